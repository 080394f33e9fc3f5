/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the winning cell at each measured size, and joins equal answers to rows. */
#include "tuner_plugin/model/fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/model/limits.h"

/* One collective on one shape. */
struct shape {
  const struct curve *by_default;
  const struct curve *others;
  size_t other_count;
};

/* A cell against the one that NCCL takes at a measured size. */
struct match {
  double over_us, us, noise;
};

/* What to do at a measured size. */
struct answer {
  const struct curve *winner; /* NULL: leave it to NCCL */
  const struct curve *over;   /* what NCCL takes */
  struct match match;
};

static bool is_certain(double gain, double noise) {
  return gain >= fmax(GUARD_GAIN_PERMILLE / 1000.0, 2 * noise);
}

static double gain_of(const struct match *match) {
  return match->over_us / match->us - 1;
}

/* False: one of them was not measured there. */
static bool compare(const struct curve *one, const struct curve *over, uint64_t bytes,
                    struct match *match) {
  const struct curve_point *ours = curve_find(one, bytes), *theirs = curve_find(over, bytes);
  if (!ours || !theirs) {
    return false;
  }
  *match = (struct match){ theirs->us, ours->us, hypot(ours->noise, theirs->noise) };
  return true;
}

/* The cell that NCCL takes at a size, at all sizes. */
static const struct curve *find_over(const struct shape *shape, const struct curve_point *point) {
  for (const struct curve *curve = shape->others; curve < shape->others + shape->other_count;
       curve++) {
    if (curve->algorithm == point->algorithm && curve->protocol == point->protocol &&
        curve->channels == 0) {
      return curve;
    }
  }
  return NULL;
}

/* Fewer channels are preferred if they cost little; 0 is NCCL's number, the most. */
static bool is_better(const struct curve *one, const struct match *mine, const struct curve *other,
                      const struct match *theirs) {
  bool is_same_cell = one->algorithm == other->algorithm && one->protocol == other->protocol;
  if (is_same_cell && one->channels != other->channels) {
    bool has_fewer = one->channels - 1 < other->channels - 1;
    double most = has_fewer ? theirs->us * FIT_CHANNEL_GAIN : theirs->us / FIT_CHANNEL_GAIN;
    return mine->us < most;
  }
  return mine->us < theirs->us;
}

static struct answer ask(const struct shape *shape, size_t size) {
  const struct curve_point *point = &shape->by_default->points[size];
  struct answer answer = { .over = find_over(shape, point) };
  for (size_t i = 0; answer.over && i < shape->other_count; i++) {
    const struct curve *curve = &shape->others[i];
    struct match match;
    if (curve != answer.over && compare(curve, answer.over, point->bytes, &match) &&
        (!answer.winner || is_better(curve, &match, answer.winner, &answer.match))) {
      answer.winner = curve;
      answer.match = match;
    }
  }
  if (answer.winner && !is_certain(gain_of(&answer.match), answer.match.noise)) {
    answer.winner = NULL;
  }
  return answer;
}

/* How the winner does at another size, against what it is to replace; -1 if nobody knows. */
static double gain_at(const struct shape *shape, const struct answer *answer, size_t size,
                      double *noise) {
  struct match match;
  if (size >= shape->by_default->count ||
      !compare(answer->winner, answer->over, shape->by_default->points[size].bytes, &match)) {
    return -1;
  }
  *noise = match.noise;
  return gain_of(&match);
}

/* Among many cells the fastest is also the one that noise favoured: at one size alone it needs
 * twice the margin. */
static bool is_confirmed(const struct shape *shape, const struct answer *answer, size_t size) {
  double noise = 0, before = gain_at(shape, answer, size - 1, &noise);
  bool is_certain_before = before >= 0 && is_certain(before, noise);
  double after = gain_at(shape, answer, size + 1, &noise);
  return is_certain_before || (after >= 0 && is_certain(after, noise)) ||
         is_certain(gain_of(&answer->match) / 2, answer->match.noise);
}

/* Where a row ends between the size of its last answer and the next one: as far as the gain is
 * likely to last, and halfway to another row. */
static uint64_t find_end(const struct shape *shape, const struct answer *answers, size_t last,
                         size_t next) {
  const struct curve_point *points = shape->by_default->points;
  double noise, there = gain_at(shape, &answers[last], next, &noise);
  double here = log1p(gain_of(&answers[last].match)), least = log1p(FIT_REACH_GAIN);
  if (there <= -1 || here <= least) {
    return points[last].bytes;
  }
  double share = log1p(there) >= least ? 1 : (here - least) / (here - log1p(there));
  share = fmin(share, answers[next].winner ? 0.5 : FIT_REACH_MOST);
  return (uint64_t)ceil((double)points[last].bytes *
                        pow((double)points[next].bytes / (double)points[last].bytes, share));
}

/* The row for equal answers at [start, end), with the figures of the size where it gains least. */
static struct profile_row make_row(const struct shape *shape, const struct answer *answers,
                                   size_t start, size_t end) {
  const struct answer *least = &answers[start];
  for (size_t i = start; i < end; i++) {
    least = gain_of(&answers[i].match) < gain_of(&least->match) ? &answers[i] : least;
  }
  const struct curve_point *points = shape->by_default->points;
  uint64_t hi = end < shape->by_default->count ? find_end(shape, answers, end - 1, end) : 0;
  return (struct profile_row){
    .bytes_lo = start > 0 ? find_end(shape, answers, start, start - 1) : points[start].bytes,
    .bytes_hi = hi > points[end - 1].bytes ? hi : points[end - 1].bytes + 1,
    .algorithm = least->winner->algorithm,
    .protocol = least->winner->protocol,
    .channels = least->winner->channels,
    .is_measured = true,
    .over_algorithm = least->over->algorithm,
    .over_protocol = least->over->protocol,
    .default_ns = (uint64_t)llround(least->match.over_us * 1000),
    .choice_ns = (uint64_t)llround(least->match.us * 1000),
    .noise_permille = (uint32_t)lround(fmin(least->match.noise, 1) * 1000),
  };
}

static int fill_table(const struct shape *shape, struct profile_table *table,
                      struct fit_counts *counts) {
  size_t count = shape->by_default->count;
  struct answer *answers = calloc(count, sizeof *answers);
  table->rows = calloc(count, sizeof *table->rows);
  if (!answers || !table->rows) {
    free(answers);
    return -ENOMEM;
  }
  for (size_t i = 0; i < count; i++) {
    answers[i] = ask(shape, i);
    if (answers[i].winner && !is_confirmed(shape, &answers[i], i)) {
      answers[i].winner = NULL;
    }
  }
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && answers[end].winner == answers[start].winner &&
                          answers[end].over == answers[start].over;
         end++) {
    }
    if (answers[start].winner) {
      table->rows[table->row_count++] = make_row(shape, answers, start, end);
      counts->won += end - start;
      counts->rows++;
    }
  }
  counts->points += count;
  free(answers);
  return 0;
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
    struct shape shape = { first, first + 1, end - start - 1 };
    int result = fill_table(&shape, table, counts);
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
  if (result == 0 && counts->shapes == 0) {
    snprintf(error->text, sizeof error->text,
             "no collective was measured both as NCCL chooses (\"default\":true) and otherwise");
    result = -EINVAL;
  }
  curves_free(&curves);
  return result;
}
