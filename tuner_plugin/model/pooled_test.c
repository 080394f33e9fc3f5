/* SPDX-License-Identifier: Apache-2.0 */
/* Tries every stretch of sizes over which NCCL's choice is the same, with every cell. */
#include "tuner_plugin/model/pooled_test.h"

#include <math.h>

#include "tuner_plugin/model/pick_winner.h"

enum {
  SIZES_LEAST = 3,    /* of a stretch; fit.c looks at the direct neighbours of a size */
  LAUNCHES_LEAST = 3, /* two launches do not show how far launches differ */
  SIZES_MAX = 64,
};

/* One cell over sizes at which NCCL chooses the same. */
struct strip {
  const struct curve *by_default;
  const struct curve *curve;
  const struct curve_point *points[SIZES_MAX]; /* the curve's, by place in by_default */
  double gains[SIZES_MAX];                     /* logs */
  double noises[SIZES_MAX];
};

static bool is_same_choice(const struct curve_point *a, const struct curve_point *b) {
  return a->algorithm == b->algorithm && a->protocol == b->protocol;
}

/* A cell that NCCL chooses itself gains nothing, unless its channels or chunk differ. */
static bool is_candidate(const struct curve *curve, const struct curve_point *by_default) {
  return curve->algorithm != by_default->algorithm || curve->protocol != by_default->protocol ||
         curve->channels > 0;
}

static void fill_strip(struct strip *strip, size_t first, size_t end) {
  for (size_t i = first; i < end; i++) {
    const struct curve_point *usual = &strip->by_default->points[i];
    strip->points[i] = curve_find(strip->curve, usual->bytes);
    if (strip->points[i]) {
      double a = strip->points[i]->noise, b = usual->noise;
      strip->gains[i] = log(usual->us / strip->points[i]->us);
      strip->noises[i] = sqrt(a * a + b * b);
    }
  }
}

/* A size that contradicts the cell ends every stretch. */
static bool is_contradicting(const struct strip *strip, size_t i) {
  return !strip->points[i] || strip->gains[i] < -fmin(strip->noises[i], PICK_WINNER_LEAST_GAIN);
}

/* ---- how sure a stretch is ---- */

/* The deviation of one launch from the mean of the size. */
static double deviation(const struct curve_point *point, size_t launch) {
  double sum = 0;
  for (size_t i = 0; i < point->launch_count; i++) {
    sum += log(point->launches[i].us);
  }
  return log(point->launches[launch].us) - sum / (double)point->launch_count;
}

/* The mean deviation of one launch over the stretch; false: it measured fewer than half of it. */
static bool deviation_of_launch(const struct strip *strip, size_t first, size_t end, uint32_t run,
                                double *mean) {
  double sum = 0;
  size_t found = 0;
  for (size_t i = first; i < end; i++) {
    const struct curve_point *point = strip->points[i];
    for (size_t j = 0; j < point->launch_count && point->launch_count > 1; j++) {
      if (point->launches[j].run == run) {
        sum += deviation(point, j);
        found++;
      }
    }
  }
  *mean = found > 0 ? sum / (double)found : 0;
  return 2 * found >= end - first;
}

/* The standard error of the mean gain, from the launches that measured `at`; negative: there are
 * too few. */
static double error_between(const struct strip *strip, size_t first, size_t end, size_t at) {
  double squares = 0;
  size_t count = 0;
  for (size_t j = 0; j < strip->points[at]->launch_count; j++) {
    double mean;
    if (deviation_of_launch(strip, first, end, strip->points[at]->launches[j].run, &mean)) {
      squares += mean * mean;
      count++;
    }
  }
  return count < LAUNCHES_LEAST ? -1 : sqrt(squares / (double)(count - 1) / (double)count);
}

/* The same from the scatter of all sizes: four launches may agree by luck, but not at every size.
 */
static double error_within(const struct strip *strip, size_t first, size_t end) {
  double squares = 0;
  size_t values = 0, free = 0;
  for (size_t i = first; i < end; i++) {
    const struct curve_point *point = strip->points[i];
    for (size_t j = 0; j < point->launch_count; j++) {
      squares += pow(deviation(point, j), 2);
    }
    values += point->launch_count;
    free += point->launch_count - 1;
  }
  return free > 0 ? POOLED_TEST_LAUNCH_PART * sqrt(squares / (double)free / (double)values) : -1;
}

/* Negative: unknown. */
static double error_of(const struct strip *strip, size_t first, size_t end) {
  size_t at = first;
  for (size_t i = first; i < end; i++) {
    at = strip->points[i]->launch_count > strip->points[at]->launch_count ? i : at;
  }
  double between = error_between(strip, first, end, at);
  return between < 0 ? -1 : fmax(between, error_within(strip, first, end));
}

/* ---- how much it gains ---- */

/* Both ends of a stretch must gain enough by themselves; otherwise the rest would hide them. */
static bool is_firm(const double *gains, size_t count) {
  double front = 0, back = 0;
  for (size_t i = 0; i < count; i++) {
    front += gains[i];
    back += gains[count - 1 - i];
    if (fmin(front, back) < log1p(PICK_WINNER_LEAST_GAIN) * (double)(i + 1)) {
      return false;
    }
  }
  return true;
}

/* The mean, or the median if that is less: one size with a large gain says little about the others.
 */
static double common_gain(const double *gains, size_t count) {
  double sorted[SIZES_MAX], sum = 0;
  for (size_t i = 0; i < count; i++) {
    sorted[i] = gains[i];
    sum += gains[i];
  }
  return fmin(sum / (double)count, interpolate_median(sorted, count));
}

/* Among so many that could have been chosen, one exceeds twice its noise by luck alone: what is as
 * rare as that for a single one is sqrt(4 + 2 ln n) for the best of n, as a normal variable's tail
 * falls with exp(-x^2 / 2). Counted are stretches of this length that do not overlap, in each
 * cell; numbers of channels are the same cell, and err alike. */
static double noises_needed(size_t sizes, size_t length, size_t cells) {
  return sqrt(4 + 2 * log((double)(sizes * cells) / (double)length));
}

/* A size whose gain is below that of the others by more than noise is excluded. */
static bool is_common(const struct strip *strip, size_t first, size_t end, double gain) {
  for (size_t i = first; i < end; i++) {
    if (strip->gains[i] < gain - 2 * strip->noises[i]) {
      return false;
    }
  }
  return true;
}

static void try_sizes(const struct strip *strip, size_t first, size_t end, double noises,
                      struct pooled_test *found) {
  double gain = common_gain(strip->gains + first, end - first);
  if (gain < log1p(PICK_WINNER_LEAST_GAIN) || !is_firm(strip->gains + first, end - first) ||
      !is_common(strip, first, end, gain)) {
    return;
  }
  double error = error_of(strip, first, end);
  if (error < 0 || expm1(gain) < noises * error) {
    return;
  }
  struct pooled_test sizes = { strip->curve, gain, error * noises / 2 };
  for (size_t i = first; i < end; i++) {
    double before = found[i].gain - 2 * found[i].noise;
    if (!found[i].winner || gain - 2 * sizes.noise > before) {
      found[i] = sizes;
    }
  }
}

/* All stretches of one cell within [first, end). */
static void try_strip(struct strip *strip, size_t first, size_t end, size_t cells,
                      struct pooled_test *found) {
  fill_strip(strip, first, end);
  for (size_t from = first; from < end; from++) {
    for (size_t to = from; to < end && !is_contradicting(strip, to); to++) {
      size_t length = to + 1 - from;
      if (length >= SIZES_LEAST) {
        try_sizes(strip, from, to + 1, noises_needed(end - first, length, cells), found);
      }
    }
  }
}

static size_t count_cells(const struct curve *others, size_t count) {
  size_t cells = 0;
  for (size_t i = 0; i < count; i++) {
    cells += i == 0 || others[i].algorithm != others[i - 1].algorithm ||
             others[i].protocol != others[i - 1].protocol;
  }
  return cells;
}

void pooled_test_run(const struct curve *by_default, const struct curve *others, size_t other_count,
                     struct pooled_test *found) {
  size_t count = by_default->count < SIZES_MAX ? by_default->count : SIZES_MAX;
  for (size_t i = 0; i < by_default->count; i++) {
    found[i] = (struct pooled_test){ 0 };
  }
  for (size_t first = 0, end; first < count; first = end) {
    const struct curve_point *usual = &by_default->points[first];
    for (end = first; end < count && is_same_choice(usual, &by_default->points[end]); end++) {
    }
    for (size_t i = 0; i < other_count; i++) {
      /* A chunk must gain more than NCCL's own: fit.c sees to these, size by size. */
      if (others[i].chunk == 0 && is_candidate(&others[i], usual)) {
        struct strip strip = { .by_default = by_default, .curve = &others[i] };
        try_strip(&strip, first, end, count_cells(others, other_count), found);
      }
    }
  }
}
