/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts samples by what they measured, and combines equal ones into one point. */
#include "tuner_plugin/model/curves.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/model/limits.h"
#include "tuner_plugin/model/quantile.h"

/* Standard errors of n values whose median absolute deviation is 1, were they normal: of their
 * median, and of the median of the means of all pairs, which is nearly as sure as their mean (1.023
 * and not 1.253 of its error) and hardly less hurt by a few launches that went wrong. */
static const double median_error = 1.2533 * 1.4826, pairs_error = 1.0233 * 1.4826;

enum { BLOCKS_MAX = 256 }; /* of one point; more add nothing */

#define COMPARE(a, b)                                                                              \
  if ((a) != (b)) {                                                                                \
    return (a) < (b) ? -1 : 1;                                                                     \
  }

static int compare_ways(const struct sample *a, const struct sample *b) {
  COMPARE(a->collective, b->collective)
  COMPARE(a->nodes, b->nodes)
  COMPARE(a->ppn, b->ppn)
  COMPARE(b->is_default, a->is_default) /* the default first */
  if (a->is_default) {
    return 0;
  }
  COMPARE(a->algorithm, b->algorithm)
  COMPARE(a->protocol, b->protocol)
  COMPARE(a->channels, b->channels)
  return 0;
}

static int compare_samples(const void *left, const void *right) {
  const struct sample *a = left, *b = right;
  int way = compare_ways(a, b);
  if (way != 0) {
    return way;
  }
  COMPARE(a->bytes, b->bytes)
  return strcmp(a->run, b->run);
}

/* ---- runs ---- */

static int compare_runs(const void *left, const void *right) {
  const struct sample *a = left, *b = right;
  COMPARE(a->collective, b->collective)
  COMPARE(a->nodes, b->nodes)
  COMPARE(a->ppn, b->ppn)
  COMPARE(a->bytes, b->bytes)
  int run = strcmp(a->run, b->run);
  if (run != 0) {
    return run;
  }
  COMPARE(b->is_default, a->is_default)
  return 0;
}

static bool is_same_size(const struct sample *a, const struct sample *b) {
  return a->collective == b->collective && a->nodes == b->nodes && a->ppn == b->ppn &&
         a->bytes == b->bytes;
}

/* What NCCL's own choice took in the run whose samples begin here; 0: it was not measured there. */
static double default_of_run(const struct sample *samples, size_t count) {
  double values[BLOCKS_MAX];
  size_t found = 0;
  for (size_t i = 0; i < count && found < BLOCKS_MAX && samples[i].is_default &&
                     strcmp(samples[i].run, samples[0].run) == 0;
       i++) {
    values[found++] = samples[i].median_us;
  }
  return quantile_median(values, found);
}

static size_t end_of_run(const struct sample *samples, size_t count) {
  size_t end = 1;
  while (end < count && strcmp(samples[end].run, samples[0].run) == 0) {
    end++;
  }
  return end;
}

/* Samples of one size, by run. Runs are hours or hosts apart, so a cell is compared only with
 * NCCL's choice of the same run: each run is scaled so that all have the same default, and runs
 * without one are dropped. Returns how many samples are left. */
static size_t level_size(struct sample *samples, size_t count, struct sample *to) {
  double values[BLOCKS_MAX];
  size_t runs = 0, kept = 0, end;
  for (size_t start = 0; start < count; start += end) {
    end = end_of_run(samples + start, count - start);
    double us = default_of_run(samples + start, end);
    if (us > 0 && runs < BLOCKS_MAX) {
      values[runs++] = us;
    }
  }
  double common_us = quantile_median(values, runs);
  for (size_t start = 0; start < count; start += end) {
    end = end_of_run(samples + start, count - start);
    double us = default_of_run(samples + start, end);
    double scale = us > 0 ? common_us / us : 1;
    for (size_t i = start; i < start + end && (us > 0 || runs == 0); i++) {
      to[kept] = samples[i];
      to[kept].median_us *= scale;
      to[kept++].mad_us *= scale;
    }
  }
  return kept;
}

static size_t level_runs(struct sample *samples, size_t count) {
  size_t kept = 0;
  qsort(samples, count, sizeof *samples, compare_runs);
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && is_same_size(&samples[start], &samples[end]); end++) {
    }
    kept += level_size(samples + start, end - start, samples + kept);
  }
  return kept;
}

/* ---- points ---- */

/* The median of the means of all pairs (Hodges and Lehmann), each value with itself as well;
 * geometric means, as times differ by factors. */
static double middle_of(const double *values, size_t count) {
  double means[BLOCKS_MAX * (BLOCKS_MAX + 1) / 2];
  size_t pairs = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = i; j < count; j++) {
      means[pairs++] = sqrt(values[i] * values[j]);
    }
  }
  return quantile_median(means, pairs);
}

/* One point of `count` samples of one size. */
static struct curve_point make_point(const struct sample *samples, size_t count) {
  double values[BLOCKS_MAX] = { 0 }; /* gcc 12 does not see that there is one at least */
  double within = 0;
  size_t blocks = count < BLOCKS_MAX ? count : BLOCKS_MAX;
  for (size_t i = 0; i < blocks; i++) {
    double noise = samples[i].mad_us > 0 ? median_error * samples[i].mad_us /
                                               sqrt((double)samples[i].n) / samples[i].median_us
                                         : CURVES_UNKNOWN_NOISE;
    within += noise * noise;
    values[i] = samples[i].median_us;
  }
  double us = middle_of(values, blocks), median_us = quantile_median(values, blocks);
  for (size_t i = 0; i < blocks; i++) {
    values[i] = fabs(samples[i].median_us - median_us);
  }
  /* Blocks that differ more than their calls do were disturbed for longer than a call. */
  /* Of two, half their difference is the standard error of their mean. */
  double error = blocks > 2 ? pairs_error : M_SQRT2;
  double between = blocks > 1 ? error * quantile_median(values, blocks) / us : 0;
  within = sqrt(within / (double)blocks);
  return (struct curve_point){
    .bytes = samples[0].bytes,
    .us = us,
    .noise = (within > between ? within : between) / sqrt((double)blocks),
    .algorithm = samples[0].algorithm,
    .protocol = samples[0].protocol,
  };
}

static int fill_curve(const struct sample *samples, size_t count, struct curve *curve) {
  *curve = (struct curve){
    .collective = samples[0].collective,
    .nodes = samples[0].nodes,
    .ppn = samples[0].ppn,
    .is_default = samples[0].is_default,
    .algorithm = samples[0].algorithm,
    .protocol = samples[0].protocol,
    .channels = samples[0].channels,
    .points = calloc(count, sizeof *curve->points),
  };
  if (!curve->points) {
    return -ENOMEM;
  }
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && samples[end].bytes == samples[start].bytes; end++) {
    }
    curve->points[curve->count++] = make_point(samples + start, end - start);
  }
  return 0;
}

static int fill_curves(const struct sample *samples, size_t count, struct curves *out) {
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && compare_ways(&samples[start], &samples[end]) == 0; end++) {
    }
    struct curve *grown = reallocarray(out->curves, out->count + 1, sizeof *grown);
    if (!grown) {
      return -ENOMEM;
    }
    out->curves = grown;
    int result = fill_curve(samples + start, end - start, &out->curves[out->count++]);
    if (result < 0) {
      return result;
    }
  }
  return 0;
}

/* NCCL's own choice is also a point of its cell's curve, so that the curve continues at sizes where
 * NCCL chooses another cell. */
static size_t add_chosen(struct sample *samples, size_t count) {
  size_t all = count;
  for (size_t i = 0; i < count; i++) {
    if (samples[i].is_default) {
      samples[all] = samples[i];
      samples[all].channels = 0;
      samples[all++].is_default = false;
    }
  }
  return all;
}

int curves_make(const struct sample *samples, size_t count, struct curves *out) {
  *out = (struct curves){ 0 };
  struct sample *sorted = malloc(2 * count * sizeof *sorted + 1);
  if (!sorted) {
    return -ENOMEM;
  }
  memcpy(sorted, samples, count * sizeof *sorted);
  count = add_chosen(sorted, level_runs(sorted, count));
  qsort(sorted, count, sizeof *sorted, compare_samples);
  int result = fill_curves(sorted, count, out);
  free(sorted);
  if (result < 0) {
    curves_free(out);
  }
  return result;
}

void curves_free(struct curves *curves) {
  for (size_t i = 0; i < curves->count; i++) {
    free(curves->curves[i].points);
  }
  free(curves->curves);
  *curves = (struct curves){ 0 };
}

const struct curve_point *curve_find(const struct curve *curve, uint64_t bytes) {
  for (size_t i = 0; i < curve->count; i++) {
    if (curve->points[i].bytes == bytes) {
      return &curve->points[i];
    }
  }
  return NULL;
}
