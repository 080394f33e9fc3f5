/* SPDX-License-Identifier: Apache-2.0 */
/* See estimates.h. */
#include "tuner_plugin/model/estimates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantile.h"
#include "tuner_plugin/model/limits.h"

/* Standard errors of n values whose median absolute deviation is 1, were they normal: of their
 * median, and of the median of the means of all pairs, which is nearly as sure as their mean (1.023
 * and not 1.253 of its error) and hardly less hurt by a few launches that went wrong. */
static const double median_error = 1.2533 * 1.4826, pairs_error = 1.0233 * 1.4826;

enum { BLOCKS_MAX = 256 }; /* of one estimate; more add nothing */

#define COMPARE(a, b)                                                                              \
  if ((a) != (b)) {                                                                                \
    return (a) < (b) ? -1 : 1;                                                                     \
  }

static int compare_shapes(const struct sample *a, const struct sample *b) {
  COMPARE(a->collective, b->collective)
  COMPARE(a->nodes, b->nodes)
  COMPARE(a->ppn, b->ppn)
  return 0;
}

/* By shape, size and run, the default first. */
static int compare_samples(const void *left, const void *right) {
  const struct sample *a = left, *b = right;
  int shape = compare_shapes(a, b);
  if (shape != 0) {
    return shape;
  }
  COMPARE(a->bytes, b->bytes)
  int run = strcmp(a->run, b->run);
  if (run != 0) {
    return run;
  }
  COMPARE(b->is_default, a->is_default)
  return 0;
}

void estimates_sort(struct sample *samples, size_t count) {
  qsort(samples, count, sizeof *samples, compare_samples);
}

size_t estimates_count_shape(const struct sample *samples, size_t count) {
  size_t end = 1;
  while (end < count && compare_shapes(&samples[0], &samples[end]) == 0) {
    end++;
  }
  return end;
}

/* ---- runs of one size ---- */

static size_t end_of_run(const struct sample *samples, size_t count) {
  size_t end = 1;
  while (end < count && strcmp(samples[end].run, samples[0].run) == 0) {
    end++;
  }
  return end;
}

/* What NCCL's own choice took in a run; 0: it was not measured there. */
static double default_of_run(const struct sample *samples, size_t count) {
  double values[BLOCKS_MAX];
  size_t found = 0;
  for (size_t i = 0; i < count && found < BLOCKS_MAX && samples[i].is_default; i++) {
    values[found++] = samples[i].median_us;
  }
  return quantile_median(values, found);
}

/* Scales each run; of those without a default all times become 0. False if no run has one. */
static bool level_runs(struct sample *samples, size_t count) {
  double values[BLOCKS_MAX];
  size_t runs = 0, end;
  for (size_t start = 0; start < count && runs < BLOCKS_MAX; start += end) {
    end = end_of_run(samples + start, count - start);
    values[runs] = default_of_run(samples + start, end);
    runs += values[runs] > 0;
  }
  double common_us = quantile_median(values, runs);
  for (size_t start = 0; start < count; start += end) {
    end = end_of_run(samples + start, count - start);
    double us = default_of_run(samples + start, end);
    for (size_t i = start; i < start + end; i++) {
      samples[i].median_us *= us > 0 ? common_us / us : 0;
      samples[i].mad_us *= us > 0 ? common_us / us : 0;
    }
  }
  return runs > 0;
}

/* ---- ways ---- */

static struct way way_of(const struct sample *sample) {
  return (struct way){ sample->algorithm, sample->protocol,
                       sample->is_default ? 0 : sample->channels };
}

static int compare_ways(const struct way *a, const struct way *b) {
  COMPARE(a->algorithm, b->algorithm)
  COMPARE(a->protocol, b->protocol)
  COMPARE(a->channels, b->channels)
  return 0;
}

/* Place of the way, or where it would be. */
static size_t find_way(const struct estimates *estimates, struct way way) {
  size_t place = 0;
  while (place < estimates->way_count && compare_ways(&estimates->ways[place], &way) < 0) {
    place++;
  }
  return place;
}

/* There is room for all. */
static void add_way(struct estimates *estimates, struct way way) {
  size_t place = find_way(estimates, way);
  if (place < estimates->way_count && compare_ways(&estimates->ways[place], &way) == 0) {
    return;
  }
  memmove(&estimates->ways[place + 1], &estimates->ways[place],
          (estimates->way_count++ - place) * sizeof way);
  estimates->ways[place] = way;
}

/* ---- estimates ---- */

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

/* The square of a sample's own noise. */
static double noise_within(const struct sample *sample) {
  double noise = sample->mad_us > 0
                     ? median_error * sample->mad_us / sqrt((double)sample->n) / sample->median_us
                     : ESTIMATES_UNKNOWN_NOISE;
  return noise * noise;
}

/* Of one way, from the samples of one size. */
static struct estimate estimate(const struct sample *samples, size_t count, struct way way) {
  double values[BLOCKS_MAX], apart[BLOCKS_MAX], within = 0;
  size_t blocks = 0;
  for (size_t i = 0; i < count && blocks < BLOCKS_MAX; i++) {
    struct way own = way_of(&samples[i]);
    if (samples[i].median_us > 0 && compare_ways(&own, &way) == 0) {
      within += noise_within(&samples[i]);
      values[blocks++] = samples[i].median_us;
    }
  }
  if (blocks == 0) {
    return (struct estimate){ 0 };
  }
  double us = middle_of(values, blocks), median_us = quantile_median(values, blocks);
  for (size_t i = 0; i < blocks; i++) {
    apart[i] = fabs(values[i] - median_us);
  }
  /* Blocks that differ more than their calls do were disturbed for longer than a call. Of two, half
   * their difference is the standard error of their mean. */
  double error = blocks > 2 ? pairs_error : M_SQRT2;
  double between = blocks > 1 ? error * quantile_median(apart, blocks) / us : 0;
  return (struct estimate){ us,
                            fmax(sqrt(within / (double)blocks), between) / sqrt((double)blocks) };
}

static void take_size(struct estimates *out, struct sample *samples, size_t count) {
  if (!level_runs(samples, count)) {
    return;
  }
  size_t size = out->size_count++, first = 0;
  while (!samples[first].is_default) {
    first++;
  }
  out->sizes[size] = samples[0].bytes;
  out->usual[size] = find_way(out, way_of(&samples[first]));
  for (size_t way = 0; way < out->way_count; way++) {
    out->all[size * out->way_count + way] = estimate(samples, count, out->ways[way]);
  }
}

int estimates_make(struct sample *samples, size_t count, struct estimates *out) {
  size_t size_count = 1;
  *out = (struct estimates){ .ways = calloc(count, sizeof *out->ways) };
  for (size_t i = 0; out->ways && i < count; i++) {
    add_way(out, way_of(&samples[i]));
    size_count += i > 0 && samples[i].bytes != samples[i - 1].bytes;
  }
  out->sizes = calloc(size_count, sizeof *out->sizes);
  out->usual = calloc(size_count, sizeof *out->usual);
  out->all = calloc(size_count * out->way_count + 1, sizeof *out->all);
  if (!out->ways || !out->sizes || !out->usual || !out->all) {
    estimates_free(out);
    return -ENOMEM;
  }
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && samples[end].bytes == samples[start].bytes; end++) {
    }
    take_size(out, samples + start, end - start);
  }
  return 0;
}

void estimates_free(struct estimates *estimates) {
  free(estimates->sizes);
  free(estimates->usual);
  free(estimates->ways);
  free(estimates->all);
  *estimates = (struct estimates){ 0 };
}
