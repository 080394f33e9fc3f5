/* SPDX-License-Identifier: Apache-2.0 */
/* What each cell takes at each size, by samples; then the winning cell at each size, and equal
 * answers joined to rows.
 *
 * Runs are hours or hosts apart, so a cell is compared only with NCCL's choice of the same run:
 * each run is scaled so that all have the same default, and samples of runs without one do not
 * count. */
#include "tuner_plugin/model/fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantile.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/model/limits.h"

struct estimate {
  double us;    /* 0: was not measured */
  double noise; /* standard error of `us`, as a share of it */
};

/* Of one collective on one shape. */
struct estimates {
  uint64_t *sizes; /* at which NCCL's own choice was measured, ascending */
  size_t *usual;   /* which of the ways that was, at each size */
  size_t size_count;
  struct profile_cell *ways; /* by algorithm, protocol, channels; 0 where NCCL chose the cell */
  size_t way_count;
  struct estimate *all; /* see estimates_at */
};

static inline const struct estimate *estimates_at(const struct estimates *estimates, size_t size,
                                                  size_t way) {
  return &estimates->all[size * estimates->way_count + way];
}

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

/* How many samples are of the first one's collective and shape. */
static size_t count_shape(const struct sample *samples, size_t count) {
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

static struct profile_cell way_of(const struct sample *sample) {
  struct profile_cell way = sample->cell;
  way.channels = sample->is_default ? 0 : way.channels;
  return way;
}

static int compare_ways(const struct profile_cell *a, const struct profile_cell *b) {
  COMPARE(a->algorithm, b->algorithm)
  COMPARE(a->protocol, b->protocol)
  COMPARE(a->channels, b->channels)
  return 0;
}

/* Place of the way, or where it would be. */
static size_t find_way(const struct estimates *estimates, struct profile_cell way) {
  size_t place = 0;
  while (place < estimates->way_count && compare_ways(&estimates->ways[place], &way) < 0) {
    place++;
  }
  return place;
}

/* There is room for all. */
static void add_way(struct estimates *estimates, struct profile_cell way) {
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
static struct estimate estimate(const struct sample *samples, size_t count,
                                struct profile_cell way) {
  double values[BLOCKS_MAX], apart[BLOCKS_MAX], within = 0;
  size_t blocks = 0;
  for (size_t i = 0; i < count && blocks < BLOCKS_MAX; i++) {
    struct profile_cell own = way_of(&samples[i]);
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

static void estimates_free(struct estimates *estimates) {
  free(estimates->sizes);
  free(estimates->usual);
  free(estimates->ways);
  free(estimates->all);
  *estimates = (struct estimates){ 0 };
}

/* From samples of one collective and shape, sorted, whose times it scales. 0 or -ENOMEM. */
static int estimates_make(struct sample *samples, size_t count, struct estimates *out) {
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

/* ---- the fit ---- */

/* A way against the one that NCCL takes at a measured size. */
struct match {
  double over_us, us, noise;
};

/* What to do at a measured size. */
struct answer {
  bool is_ours;        /* else it is left to NCCL */
  size_t winner, over; /* what is taken in place of what NCCL takes */
  struct match match;
};

static bool is_certain(double gain, double noise) {
  return gain >= fmax(GUARD_GAIN_PERMILLE / 1000.0, 2 * noise);
}

static double gain_of(const struct match *match) {
  return match->over_us / match->us - 1;
}

/* False: one of them was not measured there. */
static bool compare(const struct estimates *shape, size_t size, size_t one, size_t over,
                    struct match *match) {
  const struct estimate *ours = estimates_at(shape, size, one);
  const struct estimate *theirs = estimates_at(shape, size, over);
  *match = (struct match){ theirs->us, ours->us, hypot(ours->noise, theirs->noise) };
  return ours->us > 0 && theirs->us > 0;
}

/* Fewer channels are preferred if they cost little; 0 is NCCL's number, the most. */
static bool is_better(const struct profile_cell *one, double us, const struct profile_cell *other,
                      double other_us) {
  bool is_same_cell = one->algorithm == other->algorithm && one->protocol == other->protocol;
  if (is_same_cell && one->channels != other->channels) {
    bool has_fewer = one->channels - 1 < other->channels - 1;
    return us < (has_fewer ? other_us * FIT_CHANNEL_GAIN : other_us / FIT_CHANNEL_GAIN);
  }
  return us < other_us;
}

static struct answer ask(const struct estimates *shape, size_t size) {
  struct answer answer = { .over = shape->usual[size] };
  for (size_t way = 0; way < shape->way_count; way++) {
    struct match match;
    if (way != answer.over && compare(shape, size, way, answer.over, &match) &&
        (!answer.is_ours ||
         is_better(&shape->ways[way], match.us, &shape->ways[answer.winner], answer.match.us))) {
      answer = (struct answer){ true, way, answer.over, match };
    }
  }
  answer.is_ours = answer.is_ours && is_certain(gain_of(&answer.match), answer.match.noise);
  return answer;
}

/* How the winner does at another size, against what it is to replace; -1 if nobody knows. */
static double gain_at(const struct estimates *shape, const struct answer *answer, size_t size,
                      double *noise) {
  struct match match;
  if (size >= shape->size_count || !compare(shape, size, answer->winner, answer->over, &match)) {
    return -1;
  }
  *noise = match.noise;
  return gain_of(&match);
}

/* Among many cells the fastest is also the one that noise favoured: at one size alone it needs
 * twice the margin. */
static bool is_confirmed(const struct estimates *shape, const struct answer *answer, size_t size) {
  double noise = 0, before = gain_at(shape, answer, size - 1, &noise);
  bool is_certain_before = before >= 0 && is_certain(before, noise);
  double after = gain_at(shape, answer, size + 1, &noise);
  return is_certain_before || (after >= 0 && is_certain(after, noise)) ||
         is_certain(gain_of(&answer->match) / 2, answer->match.noise);
}

/* Where a row ends between the size of its last answer and the next one: as far as the gain is
 * likely to last, and halfway to another row. */
static uint64_t find_end(const struct estimates *shape, const struct answer *answers, size_t last,
                         size_t next) {
  double noise, there = gain_at(shape, &answers[last], next, &noise);
  double here = log1p(gain_of(&answers[last].match)), least = log1p(FIT_REACH_GAIN);
  if (there <= -1 || here <= least) {
    return shape->sizes[last];
  }
  double share = log1p(there) >= least ? 1 : (here - least) / (here - log1p(there));
  share = fmin(share, answers[next].is_ours ? 0.5 : FIT_REACH_MOST);
  double bytes = (double)shape->sizes[last];
  return (uint64_t)ceil(bytes * pow((double)shape->sizes[next] / bytes, share));
}

/* The row for equal answers at [start, end), with the figures of the size where it gains least. */
static struct profile_row make_row(const struct estimates *shape, const struct answer *answers,
                                   size_t start, size_t end) {
  const struct answer *least = &answers[start];
  for (size_t i = start; i < end; i++) {
    least = gain_of(&answers[i].match) < gain_of(&least->match) ? &answers[i] : least;
  }
  const uint64_t *sizes = shape->sizes;
  const struct profile_cell *winner = &shape->ways[least->winner],
                            *over = &shape->ways[least->over];
  uint64_t hi = end < shape->size_count ? find_end(shape, answers, end - 1, end) : 0;
  return (struct profile_row){
    .bytes_lo = start > 0 ? find_end(shape, answers, start, start - 1) : sizes[start],
    .bytes_hi = hi > sizes[end - 1] ? hi : sizes[end - 1] + 1,
    .cell = *winner,
    .is_measured = true,
    .over = { over->algorithm, over->protocol, 0 },
    .default_ns = (uint64_t)llround(least->match.over_us * 1000),
    .choice_ns = (uint64_t)llround(least->match.us * 1000),
    .noise_permille = (uint32_t)lround(fmin(least->match.noise, 1) * 1000),
  };
}

static bool is_same_answer(const struct answer *a, const struct answer *b) {
  return a->is_ours == b->is_ours && (!a->is_ours || a->winner == b->winner) && a->over == b->over;
}

static int fill_table(const struct estimates *shape, struct profile_table *table,
                      struct fit_counts *counts) {
  size_t count = shape->size_count;
  struct answer *answers = calloc(count, sizeof *answers);
  table->rows = calloc(count, sizeof *table->rows);
  if (!answers || !table->rows) {
    free(answers);
    return -ENOMEM;
  }
  for (size_t i = 0; i < count; i++) {
    answers[i] = ask(shape, i);
    answers[i].is_ours = answers[i].is_ours && is_confirmed(shape, &answers[i], i);
  }
  for (size_t start = 0, end; start < count; start = end) {
    for (end = start + 1; end < count && is_same_answer(&answers[start], &answers[end]); end++) {
    }
    if (answers[start].is_ours) {
      table->rows[table->row_count++] = make_row(shape, answers, start, end);
      counts->won += end - start;
      counts->rows++;
    }
  }
  counts->points += count;
  counts->shapes++;
  free(answers);
  return 0;
}

static bool has_choice(const struct sample *samples, size_t count, bool is_default) {
  for (size_t i = 0; i < count; i++) {
    if (samples[i].is_default == is_default) {
      return true;
    }
  }
  return false;
}

/* Of one shape; none if there is nothing to compare. */
static int add_table(struct sample *samples, size_t count, struct profile *profile,
                     struct fit_counts *counts) {
  struct estimates shape;
  if (!has_choice(samples, count, true) || !has_choice(samples, count, false)) {
    return 0;
  }
  struct profile_table *tables =
      reallocarray(profile->tables, profile->table_count + 1, sizeof *tables);
  if (!tables) {
    return -ENOMEM;
  }
  profile->tables = tables;
  struct profile_table *table = &tables[profile->table_count++];
  *table =
      (struct profile_table){ samples[0].collective, samples[0].nodes, samples[0].ppn, NULL, 0 };
  int result = estimates_make(samples, count, &shape);
  if (result == 0) {
    result = fill_table(&shape, table, counts);
    estimates_free(&shape);
  }
  return result;
}

int fit_profile(const struct sample *samples, size_t count, struct profile *profile,
                struct fit_counts *counts, struct profile_error *error) {
  struct sample *sorted = calloc(count + 1, sizeof *sorted);
  int result = sorted ? 0 : -ENOMEM;
  *counts = (struct fit_counts){ 0 };
  if (sorted && count > 0) {
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_samples);
  }
  for (size_t start = 0, end; start < count && result == 0; start = end) {
    end = start + count_shape(sorted + start, count - start);
    result = add_table(sorted + start, end - start, profile, counts);
  }
  free(sorted);
  if (result == 0 && counts->shapes == 0) {
    snprintf(error->text, sizeof error->text,
             "no collective was measured both as NCCL chooses (\"default\":true) and otherwise");
    result = -EINVAL;
  }
  return result;
}
