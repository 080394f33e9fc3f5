/* SPDX-License-Identifier: Apache-2.0 */
/* Asks at many sizes which curve is best and whether that is sure, then joins equal answers. */
#include "tuner_plugin/model/fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/nccl_chunk.h"
#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/model/together.h"

enum {
  STEPS_PER_SIZE = 4, /* places looked at from one measured size to the next */
  PLACES_MAX = 64 * STEPS_PER_SIZE,
};

/* A channel is left to the application's own kernels if it gains less than this. */
static const double channel_gain = 1.02;

/* A chunk is left to NCCL, which adapts it to sizes, if asking for one gains less than this. */
static const double chunk_gain = 1.02;

/* As guard.h: what is gained at least. */
static const double least_gain = 0.03;

/* Neighbouring sizes of one launch err together in part: their mean is so much less sure. */
static const double launch_part = 1.3;

/* Between measured sizes a time may jump, as NCCL changes channels, chunks and threads there: by a
 * tenth of what it rises in all, and no more than for a time that doubles. Where it does not rise
 * nothing jumps. */
static const double jump_share = 0.1, jump_most = 0.07;

/* One collective on one shape. */
struct contest {
  const struct curve *by_default;
  const struct curve *others;
  size_t other_count;
};

/* What to do at one size. */
struct answer {
  double bytes;
  const struct curve *winner; /* NULL: leave it to NCCL */
  enum profile_algorithm over_algorithm;
  enum profile_protocol over_protocol;
  bool is_over_any; /* it holds whatever NCCL chooses */
  double default_us, winner_us, noise;
  bool is_measured; /* not interpolated */
  double margin;    /* what is gained must be more by this factor */
};

static uint64_t to_ns(double us) {
  return (uint64_t)llround(us * 1000);
}

static uint32_t to_permille(double share) {
  return share < 1 ? (uint32_t)lround(share * 1000) : 1000;
}

static bool is_worth(const struct answer *answer) {
  return guard_is_worth(to_ns(answer->default_us), to_ns(answer->winner_us * answer->margin),
                        to_permille(answer->noise));
}

/* What NCCL chose at the last measured size up to here, or at the first one from here on. */
static const struct curve_point *default_point(const struct curve *by_default, double bytes,
                                               bool is_next) {
  size_t i = 0;
  while (i + 1 < by_default->count && (double)by_default->points[i + 1].bytes <= bytes) {
    i++;
  }
  bool is_between = (double)by_default->points[i].bytes < bytes && i + 1 < by_default->count;
  return &by_default->points[is_next && is_between ? i + 1 : i];
}

/* `from` and `to` are the measured sizes around a place, or both the place itself. */
static double margin_between(const struct curve_point *from, const struct curve_point *to) {
  return 1 + fmin(jump_most, jump_share * fabs(log(to->us / from->us)));
}

/* The same as NCCL's choice would not change anything. */
static bool is_other_than(const struct curve *curve, const struct curve_point *by_default) {
  return curve->algorithm != by_default->algorithm || curve->protocol != by_default->protocol ||
         curve->channels > 0 || curve->chunk > 0;
}

/* Can a row ask for it? A chunk needs a number of channels, by which the plugin finds the row. */
static bool is_askable(const struct curve *curve) {
  return curve->chunk == 0 ||
         (curve->channels > 0 && curve->chunk >= NCCL_CHUNK_MIN && curve->chunk <= NCCL_CHUNK_MAX &&
          nccl_chunk_round(curve->chunk, curve->protocol) > 0);
}

/* The curve of the cell that NCCL chose there, as it goes on where NCCL chooses another; NULL: it
 * ends before. */
static const struct curve *chosen_curve(const struct contest *contest,
                                        const struct curve_point *by_default, double bytes) {
  for (size_t i = 0; i < contest->other_count; i++) {
    const struct curve *curve = &contest->others[i];
    if (!is_other_than(curve, by_default) && curve_covers(curve, bytes)) {
      return curve;
    }
  }
  return NULL;
}

static double noise_of(const struct curve *one, const struct curve *other, double bytes) {
  double a = curve_noise(one, bytes), b = curve_noise(other, bytes);
  return sqrt(a * a + b * b);
}

/* The measured size itself, or the last one before `bytes`, or the first one behind. */
static bool is_near(const struct curve *by_default, size_t i, double bytes) {
  return (i + 1 >= by_default->count || (double)by_default->points[i + 1].bytes >= bytes) &&
         (i == 0 || (double)by_default->points[i - 1].bytes <= bytes);
}

/* A cell that is faster at neighbouring sizes as well, by as much as they are sure of together, is
 * faster: what each errs by is its own, and their mean errs less. */
static void pool_noise(struct answer *answer, const struct contest *contest,
                       const struct curve_point *over) {
  const struct curve *by_default = contest->by_default;
  double gain = 0, squares = 0;
  int count = 0;
  for (size_t i = 0; i < by_default->count; i++) {
    double bytes = (double)by_default->points[i].bytes;
    const struct curve *chosen =
        is_near(by_default, i, answer->bytes) ? chosen_curve(contest, over, bytes) : NULL;
    if (!chosen || !curve_covers(answer->winner, bytes)) {
      continue;
    }
    double noise = noise_of(answer->winner, chosen, bytes);
    double gain_here = log(curve_us(chosen, bytes) / curve_us(answer->winner, bytes));
    if (gain_here <= 0) {
      return;
    }
    gain += gain_here;
    squares += noise * noise;
    count++;
  }
  if (count > 1) {
    double pooled = launch_part * sqrt(squares) / count;
    bool is_sure = exp(gain / count) - 1 >= fmax(least_gain, 2 * pooled);
    answer->noise = is_sure ? fmin(answer->noise, pooled) : answer->noise;
  }
}

static void take(struct answer *answer, const struct contest *contest,
                 const struct curve_point *over, const struct curve *winner) {
  answer->winner = winner;
  answer->winner_us = curve_us(winner, answer->bytes);
  answer->noise = noise_of(winner, contest->by_default, answer->bytes);
  pool_noise(answer, contest, over);
}

/* The same cell with NCCL's own chunk, if it is nearly as good, and sure as well. */
static void prefer_own_chunk(struct answer *answer, const struct contest *contest,
                             const struct curve_point *by_default) {
  struct answer best = *answer;
  for (size_t i = 0; i < contest->other_count && best.winner->chunk > 0; i++) {
    const struct curve *curve = &contest->others[i];
    if (curve->chunk > 0 || curve->algorithm != best.winner->algorithm ||
        curve->protocol != best.winner->protocol || !is_other_than(curve, by_default) ||
        !curve_covers(curve, answer->bytes)) {
      continue;
    }
    struct answer own = best;
    take(&own, contest, by_default, curve);
    bool is_better = answer->winner->chunk > 0 || own.winner_us < answer->winner_us;
    if (is_better && own.winner_us <= chunk_gain * best.winner_us && is_worth(&own)) {
      *answer = own;
    }
  }
}

/* Fewer channels of the same cell that are nearly as good, and sure as well. */
static void prefer_few_channels(struct answer *answer, const struct contest *contest,
                                const struct curve_point *over) {
  struct answer best = *answer;
  for (size_t i = 0; i < contest->other_count; i++) {
    const struct curve *curve = &contest->others[i];
    bool is_fewer = curve->channels > 0 &&
                    (answer->winner->channels == 0 || curve->channels < answer->winner->channels);
    if (!is_fewer || curve->algorithm != best.winner->algorithm ||
        curve->protocol != best.winner->protocol || curve->chunk != best.winner->chunk ||
        !curve_covers(curve, answer->bytes)) {
      continue;
    }
    struct answer fewer = *answer;
    take(&fewer, contest, over, curve);
    if (fewer.winner_us <= channel_gain * best.winner_us && is_worth(&fewer)) {
      *answer = fewer;
    }
  }
}

/* What to do at a size if NCCL chooses there as at a measured one. */
static struct answer ask_over(const struct contest *contest, double bytes, bool is_measured,
                              const struct curve_point *by_default) {
  const struct curve *chosen =
      is_measured ? contest->by_default : chosen_curve(contest, by_default, bytes);
  struct answer answer = {
    .bytes = bytes,
    .over_algorithm = by_default->algorithm,
    .over_protocol = by_default->protocol,
    .default_us = chosen ? curve_us(chosen, bytes) : 0,
    .is_measured = is_measured,
    .margin = margin_between(default_point(contest->by_default, bytes, false),
                             default_point(contest->by_default, bytes, true)),
  };
  for (size_t i = 0; chosen && i < contest->other_count; i++) {
    const struct curve *curve = &contest->others[i];
    if (!curve_covers(curve, bytes) || !is_other_than(curve, by_default) || !is_askable(curve)) {
      continue;
    }
    if (!answer.winner || curve_us(curve, bytes) < answer.winner_us) {
      take(&answer, contest, by_default, curve);
    }
  }
  if (answer.winner && is_worth(&answer)) {
    prefer_own_chunk(&answer, contest, by_default);
  }
  if (answer.winner) {
    prefer_few_channels(&answer, contest, by_default); /* may be sure where the fastest is not */
    answer.winner = is_worth(&answer) ? answer.winner : NULL;
  }
  return answer;
}

/* Somewhere between two measured sizes NCCL may begin to choose otherwise. A row holds over one
 * choice only, and leaves the other alone: it is made for the one where more is to be gained. */
static struct answer ask(const struct contest *contest, double bytes, bool is_measured) {
  const struct curve_point *last = default_point(contest->by_default, bytes, false);
  const struct curve_point *next = default_point(contest->by_default, bytes, true);
  struct answer answer = ask_over(contest, bytes, is_measured, last);
  if (!is_measured && (next->algorithm != last->algorithm || next->protocol != last->protocol)) {
    struct answer other = ask_over(contest, bytes, is_measured, next);
    bool is_better = other.winner && (!answer.winner || other.default_us * answer.winner_us >
                                                            answer.default_us * other.winner_us);
    answer = is_better ? other : answer;
  }
  return answer;
}

static size_t ask_everywhere(const struct contest *contest, struct answer *answers) {
  const struct curve *by_default = contest->by_default;
  size_t count = 0;
  for (size_t i = 0; i < by_default->count; i++) {
    double bytes = (double)by_default->points[i].bytes;
    if (count + STEPS_PER_SIZE >= PLACES_MAX || bytes < 1) {
      continue;
    }
    answers[count++] = ask(contest, bytes, true);
    if (i + 1 == by_default->count) {
      break;
    }
    double next = (double)by_default->points[i + 1].bytes;
    for (int step = 1; step < STEPS_PER_SIZE; step++) {
      answers[count++] =
          ask(contest, bytes * pow(next / bytes, (double)step / STEPS_PER_SIZE), false);
    }
  }
  return count;
}

static bool is_same_answer(const struct answer *a, const struct answer *b) {
  return a->winner == b->winner && a->is_over_any == b->is_over_any &&
         a->over_algorithm == b->over_algorithm && a->over_protocol == b->over_protocol;
}

/* Equal answers side by side: [start, end). */
struct stretch {
  size_t start, end;
  size_t measured; /* sizes among them */
};

/* The next stretch; from a zeroed one the first. */
static bool next_stretch(struct stretch *stretch, const struct answer *answers, size_t count) {
  size_t start = stretch->end;
  *stretch = (struct stretch){ start, start, 0 };
  while (stretch->end < count && is_same_answer(&answers[start], &answers[stretch->end])) {
    stretch->measured += answers[stretch->end++].is_measured;
  }
  return start < count;
}

/* The cell that won there is sure to beat NCCL's choice at a measured neighbour, too, be it the
 * fastest there or not. */
static bool has_company(const struct contest *contest, const struct answer *answer) {
  const struct curve *by_default = contest->by_default;
  for (size_t i = 0; i < by_default->count; i++) {
    const struct curve_point *point = &by_default->points[i];
    double bytes = (double)point->bytes;
    bool is_neighbour = bytes != answer->bytes && is_near(by_default, i, answer->bytes);
    bool is_over_same =
        point->algorithm == answer->over_algorithm && point->protocol == answer->over_protocol;
    if (is_neighbour && is_over_same && curve_covers(answer->winner, bytes)) {
      double gain = point->us / curve_us(answer->winner, bytes) - 1;
      if (gain >= fmax(least_gain, 2 * noise_of(answer->winner, by_default, bytes))) {
        return true;
      }
    }
  }
  return false;
}

static bool is_sure_alone(const struct contest *contest, const struct answer *answer) {
  double gain = answer->default_us / answer->winner_us - 1;
  return answer->is_measured &&
         (gain >= fmax(2 * least_gain, 4 * answer->noise) || has_company(contest, answer));
}

/* A size that won alone, its measured neighbours saying otherwise, has mostly won by luck: among
 * many cells the fastest is the one that the noise favoured. It needs twice the margin. */
static void drop_lonely(const struct contest *contest, struct answer *answers, size_t count) {
  for (struct stretch here = { 0 }; next_stretch(&here, answers, count);) {
    bool is_kept = !answers[here.start].winner || here.measured > 1;
    for (size_t i = here.start; i < here.end && !is_kept; i++) {
      is_kept = is_sure_alone(contest, &answers[i]);
    }
    for (size_t i = here.start; i < here.end && !is_kept; i++) {
      answers[i].winner = NULL;
    }
  }
}

/* A measured size without a winner gets the cell that gains around it, with the figures of all. */
static void take_together(const struct contest *contest, struct answer *answers, size_t count) {
  struct together found[PLACES_MAX];
  if (contest->by_default->count > PLACES_MAX) {
    return;
  }
  together_judge(contest->by_default, contest->others, contest->other_count, found);
  for (size_t i = 0, point = 0; i < count; i++) {
    if (!answers[i].is_measured) {
      continue;
    }
    while ((double)contest->by_default->points[point].bytes < answers[i].bytes) {
      point++;
    }
    struct answer answer = answers[i];
    answer.winner = found[point].winner;
    answer.winner_us = answer.default_us / exp(found[point].gain);
    answer.noise = found[point].noise;
    if (!answers[i].winner && answer.winner && is_worth(&answer)) {
      answers[i] = answer;
    }
  }
}

/* The same way to run it, whatever number of channels. */
static bool is_same_cell(const struct answer *a, const struct answer *b) {
  return a->winner && b->winner && a->winner->algorithm == b->winner->algorithm &&
         a->winner->protocol == b->winner->protocol && a->winner->chunk == b->winner->chunk &&
         a->over_algorithm == b->over_algorithm && a->over_protocol == b->over_protocol;
}

/* Between two measured sizes with the same answer it is the same, if they gain enough for what may
 * jump between them. */
static void fill_between(struct answer *answers, size_t count) {
  size_t last = count;
  for (size_t next = 0; next < count; next++) {
    if (!answers[next].is_measured) {
      continue;
    }
    bool is_same = last < count && is_same_cell(&answers[last], &answers[next]);
    for (size_t i = last + 1; is_same && i < next; i++) {
      double bytes = answers[i].bytes;
      bool is_nearer_last = bytes * bytes < answers[last].bytes * answers[next].bytes;
      struct answer same = answers[is_nearer_last ? last : next];
      same.bytes = bytes;
      same.is_measured = false;
      same.margin = answers[i].margin;
      if (!answers[i].winner && is_worth(&same)) {
        answers[i] = same;
      }
    }
    last = next;
  }
}

/* Between two sizes at which NCCL chooses differently, and something else won at both, a cell that
 * is the fastest of all and gains over either choice is right wherever NCCL changes its mind. */
static void hold_over_both(const struct contest *contest, struct answer *answers, size_t count) {
  size_t last = count;
  for (size_t next = 0; next < count; next++) {
    if (!answers[next].is_measured) {
      continue;
    }
    bool is_won = last < count && answers[last].winner && answers[next].winner;
    for (size_t i = last + 1; is_won && i < next; i++) {
      double bytes = answers[i].bytes;
      const struct curve_point *from = default_point(contest->by_default, bytes, false);
      const struct curve_point *to = default_point(contest->by_default, bytes, true);
      struct answer one = ask_over(contest, bytes, false, from);
      struct answer other = ask_over(contest, bytes, false, to);
      if ((from->algorithm != to->algorithm || from->protocol != to->protocol) && one.winner &&
          one.winner == other.winner) {
        answers[i] = (struct answer){ .bytes = bytes, .winner = one.winner, .is_over_any = true };
      }
    }
    last = next;
  }
}

static int append_row(struct profile_table *table, struct profile_row row) {
  struct profile_row *rows = reallocarray(table->rows, table->row_count + 1, sizeof *rows);
  if (!rows) {
    return -ENOMEM;
  }
  table->rows = rows;
  table->rows[table->row_count++] = row;
  return 0;
}

/* Between two places that differ, a row ends halfway. */
static uint64_t border(const struct answer *answers, size_t at, size_t count) {
  if (at == 0) {
    return (uint64_t)answers[0].bytes;
  }
  if (at == count) {
    return (uint64_t)answers[count - 1].bytes + 1;
  }
  return (uint64_t)ceil(sqrt(answers[at - 1].bytes * answers[at].bytes));
}

/* The row for equal answers, with the figures of where it gains least. */
static struct profile_row make_row(const struct answer *answers, size_t start, size_t end,
                                   size_t count) {
  const struct answer *least = &answers[start];
  for (size_t i = start; i < end; i++) {
    if (answers[i].default_us * least->winner_us < least->default_us * answers[i].winner_us) {
      least = &answers[i];
    }
  }
  struct profile_row row = {
    .bytes_lo = border(answers, start, count),
    .bytes_hi = border(answers, end, count),
    .algorithm = least->winner->algorithm,
    .protocol = least->winner->protocol,
    .channels = least->winner->channels,
    .chunk_bytes = least->winner->chunk,
  };
  if (!least->is_over_any) {
    row.is_measured = true;
    row.over_algorithm = least->over_algorithm;
    row.over_protocol = least->over_protocol;
    row.default_ns = to_ns(least->default_us);
    row.choice_ns = to_ns(least->winner_us);
    row.noise_permille = to_permille(least->noise);
  }
  return row;
}

static int fill_table(const struct contest *contest, struct profile_table *table,
                      struct fit_counts *counts) {
  struct answer answers[PLACES_MAX];
  size_t count = ask_everywhere(contest, answers);
  drop_lonely(contest, answers, count);
  take_together(contest, answers, count);
  fill_between(answers, count);
  hold_over_both(contest, answers, count);
  int result = 0;
  for (struct stretch here = { 0 }; result == 0 && next_stretch(&here, answers, count);) {
    counts->points += here.measured;
    if (answers[here.start].winner) {
      counts->won += here.measured;
      counts->rows++;
      result = append_row(table, make_row(answers, here.start, here.end, count));
    }
  }
  return result;
}

/* Was anything but NCCL's own choice measured on this shape? */
static bool is_compared(const struct sample *samples, size_t count, const struct curve *shape) {
  for (size_t i = 0; i < count; i++) {
    if (!samples[i].is_default && samples[i].collective == shape->collective &&
        samples[i].nodes == shape->nodes && samples[i].ppn == shape->ppn) {
      return true;
    }
  }
  return false;
}

static int fill_tables(const struct curves *curves, const struct sample *samples, size_t count,
                       struct profile *profile, struct fit_counts *counts) {
  for (size_t start = 0, end; start < curves->count; start = end) {
    const struct curve *first = &curves->curves[start];
    for (end = start + 1; end < curves->count; end++) {
      const struct curve *other = &curves->curves[end];
      if (other->collective != first->collective || other->nodes != first->nodes ||
          other->ppn != first->ppn) {
        break;
      }
    }
    if (!first->is_default || !is_compared(samples, count, first)) {
      continue;
    }
    struct profile_table *tables =
        reallocarray(profile->tables, profile->table_count + 1, sizeof *tables);
    if (!tables) {
      return -ENOMEM;
    }
    profile->tables = tables;
    struct profile_table *table = &profile->tables[profile->table_count++];
    *table = (struct profile_table){ first->collective, first->nodes, first->ppn, NULL, 0 };
    struct contest contest = { first, first + 1, end - start - 1 };
    int result = fill_table(&contest, table, counts);
    if (result < 0) {
      return result;
    }
    counts->shapes++;
  }
  return 0;
}

int fit_profile(const struct sample *samples, size_t count, struct profile *profile,
                struct fit_counts *counts, struct profile_error *error) {
  struct curves curves;
  *counts = (struct fit_counts){ 0 };
  int result = curves_make(samples, count, &curves);
  if (result == 0) {
    result = fill_tables(&curves, samples, count, profile, counts);
  }
  if (result == 0) {
    result = fit_models(&curves, profile);
    counts->models = profile->model_count;
  }
  if (result == 0 && counts->shapes == 0) {
    snprintf(error->text, sizeof error->text,
             "no collective was measured both as NCCL chooses (\"default\":true) and otherwise");
    result = -EINVAL;
  }
  curves_free(&curves);
  return result;
}
