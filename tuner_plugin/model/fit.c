/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the winning cell at many sizes, checks each against its neighbouring sizes, and joins equal
 * answers to rows. */
#include "tuner_plugin/model/fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tuner_plugin/model/limits.h"
#include "tuner_plugin/model/pick_winner.h"

enum { PLACES_MAX = 64 * FIT_STEPS_PER_SIZE };

static size_t ask_everywhere(const struct candidates *candidates, struct answer *answers) {
  const struct curve *by_default = candidates->by_default;
  size_t count = 0;
  for (size_t i = 0; i < by_default->count; i++) {
    double bytes = (double)by_default->points[i].bytes;
    if (count + FIT_STEPS_PER_SIZE >= PLACES_MAX || bytes < 1) {
      continue;
    }
    answers[count++] = pick_winner_at(candidates, bytes, true);
    if (i + 1 == by_default->count) {
      break;
    }
    double next = (double)by_default->points[i + 1].bytes;
    for (int step = 1; step < FIT_STEPS_PER_SIZE; step++) {
      answers[count++] = pick_winner_at(
          candidates, bytes * pow(next / bytes, (double)step / FIT_STEPS_PER_SIZE), false);
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

/* The verdicts of the measured sizes next to a place on the cell that won there, whether or not it
 * is the fastest at them: how many of each. */
struct company {
  int said[PICK_WINNER_SURE + 1];
  int sure_over_same; /* of the sure ones, where NCCL chooses what the row would be over */
};

static struct company find_company(const struct candidates *candidates,
                                   const struct answer *answer) {
  const struct curve *by_default = candidates->by_default;
  struct company company = { 0 };
  for (size_t i = 0; i < by_default->count; i++) {
    const struct curve_point *point = &by_default->points[i];
    double bytes = (double)point->bytes;
    if (bytes != answer->bytes && pick_winner_is_near(by_default, i, answer->bytes)) {
      enum pick_winner_side side = pick_winner_side_at(candidates, answer, point->bytes);
      company.said[side]++;
      company.sure_over_same += side == PICK_WINNER_SURE &&
                                point->algorithm == answer->over_algorithm &&
                                point->protocol == answer->over_protocol;
    }
  }
  return company;
}

/* A measured size is confirmed by twice the margin, or by a neighbour. A place between two sizes is
 * confirmed by both, or by one of them and twice the margin, if the other does not contradict. */
static bool is_sure_alone(const struct candidates *candidates, const struct answer *answer) {
  struct company company = find_company(candidates, answer);
  double gain = answer->default_us / answer->winner_us - 1;
  bool is_great = pick_winner_is_sure(gain / 2, answer->noise);
  if (answer->is_measured) {
    return is_great || company.sure_over_same > 0;
  }
  int sure = company.said[PICK_WINNER_SURE];
  return sure == 2 || (sure == 1 && is_great && company.said[PICK_WINNER_AGAINST] == 0);
}

/* A winner whose measured neighbours contradict it has mostly won by luck: among many cells the
 * fastest is the one that noise favoured. It needs twice the margin. */
static void drop_lonely(const struct candidates *candidates, struct answer *answers, size_t count) {
  for (struct stretch here = { 0 }; next_stretch(&here, answers, count);) {
    bool is_kept = !answers[here.start].winner || here.measured > 1;
    for (size_t i = here.start; i < here.end && !is_kept; i++) {
      is_kept = is_sure_alone(candidates, &answers[i]);
    }
    for (size_t i = here.start; i < here.end && !is_kept; i++) {
      answers[i].winner = NULL;
    }
  }
}

/* The same cell, with any number of channels. */
static bool is_same_cell(const struct answer *a, const struct answer *b) {
  return a->winner && b->winner && a->winner->algorithm == b->winner->algorithm &&
         a->winner->protocol == b->winner->protocol && a->over_algorithm == b->over_algorithm &&
         a->over_protocol == b->over_protocol;
}

/* The places between two measured sizes that follow each other. */
struct gap {
  size_t last, next; /* the measured ones */
};

/* The next gap; from a zeroed one the first. The first place is a measured size. */
static bool next_gap(struct gap *gap, const struct answer *answers, size_t count) {
  gap->last = gap->next;
  do {
    gap->next++;
  } while (gap->next < count && !answers[gap->next].is_measured);
  return gap->next < count;
}

/* Between two measured sizes with the same answer the answer is the same, if the gains exceed the
 * jumps that are possible between them. */
static void fill_between(const struct candidates *candidates, struct answer *answers,
                         size_t count) {
  for (struct gap gap = { 0 }; next_gap(&gap, answers, count);) {
    const struct answer *last = &answers[gap.last], *next = &answers[gap.next];
    bool is_same = is_same_cell(last, next);
    for (size_t i = gap.last + 1; is_same && i < gap.next; i++) {
      double bytes = answers[i].bytes;
      struct answer same = bytes * bytes < last->bytes * next->bytes ? *last : *next;
      same.bytes = bytes;
      same.is_measured = false;
      same.margin = pick_winner_margin(candidates, &same);
      if (!answers[i].winner && pick_winner_is_worth(&same)) {
        answers[i] = same;
      }
    }
  }
}

/* Between two sizes at which NCCL chooses differently, and something else won at both, a cell that
 * is the fastest of all and gains over either choice is right wherever NCCL changes its choice. */
static void hold_over_both(const struct candidates *candidates, struct answer *answers,
                           size_t count) {
  for (struct gap gap = { 0 }; next_gap(&gap, answers, count);) {
    const struct curve_point *from =
        pick_winner_default_point(candidates->by_default, answers[gap.last].bytes, false);
    const struct curve_point *to =
        pick_winner_default_point(candidates->by_default, answers[gap.next].bytes, false);
    bool is_changed = from->algorithm != to->algorithm || from->protocol != to->protocol;
    bool is_won = answers[gap.last].winner && answers[gap.next].winner;
    for (size_t i = gap.last + 1; is_changed && is_won && i < gap.next; i++) {
      double bytes = answers[i].bytes;
      struct answer one = pick_winner_over(candidates, bytes, false, from);
      struct answer other = pick_winner_over(candidates, bytes, false, to);
      if (one.winner && one.winner == other.winner) {
        answers[i] = (struct answer){ .bytes = bytes, .winner = one.winner, .is_over_any = true };
      }
    }
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

/* The row for equal answers, with the figures of the place where it gains least. */
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
  };
  if (!least->is_over_any) {
    row.is_measured = true;
    row.over_algorithm = least->over_algorithm;
    row.over_protocol = least->over_protocol;
    row.default_ns = pick_winner_ns(least->default_us);
    row.choice_ns = pick_winner_ns(least->winner_us);
    row.noise_permille = pick_winner_permille(least->noise);
  }
  return row;
}

static int fill_table(const struct candidates *candidates, struct profile_table *table,
                      struct fit_counts *counts) {
  struct answer answers[PLACES_MAX];
  size_t count = ask_everywhere(candidates, answers);
  drop_lonely(candidates, answers, count);
  fill_between(candidates, answers, count);
  hold_over_both(candidates, answers, count);
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
    struct candidates candidates = { first, first + 1, end - start - 1 };
    int result = fill_table(&candidates, table, counts);
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
