/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up runs size by size, and compares the rows of the profile with them. */
#include "tuner_plugin/tools/calibrate/ab_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantile.h"
#include "tuner_plugin/tools/limits.h"

static struct ab_test_point *find_or_add(struct ab_test *test, const struct bench_json_row *row) {
  for (size_t i = 0; i < test->count; i++) {
    struct ab_test_point *point = &test->points[i];
    if (point->collective == row->collective && point->bytes == row->bytes) {
      return point;
    }
  }
  struct ab_test_point *points = reallocarray(test->points, test->count + 1, sizeof *test->points);
  if (!points) {
    return NULL;
  }
  test->points = points;
  points[test->count] =
      (struct ab_test_point){ .collective = row->collective, .bytes = row->bytes };
  return &points[test->count++];
}

int ab_test_add(struct ab_test *test, const struct bench_json_row *row, bool is_profile) {
  struct ab_test_point *point = find_or_add(test, row);
  if (!point) {
    return -ENOMEM;
  }
  test->wrong += row->wrong;
  size_t *count = &point->run_count[is_profile];
  if (*count < AB_TEST_ROUNDS_MAX) {
    point->runs_us[is_profile][(*count)++] = row->median_us;
  }
  return 0;
}

/* Runs of one size on one side. */
struct runs {
  double median_us;
  double scatter; /* from quartile to quartile, as the deviation that this is of a normal
                     distribution, as a part of the median */
};

/* A launch may get good paths for its flows or bad ones. If four of seven get equal ones, the
 * median absolute deviation is near zero and hides the scatter; the quartiles show it. */
static struct runs sum_up(const struct ab_test_point *point, int side) {
  double times[AB_TEST_ROUNDS_MAX];
  size_t count = point->run_count[side];
  memcpy(times, point->runs_us[side], count * sizeof *times);
  double median = quantile_median(times, count);
  double apart = quantile_at(times, count, 0.75) - quantile_at(times, count, 0.25);
  return (struct runs){ median, median > 0 ? apart / 1.349 / median : 0 };
}

/* The worse of both sides. */
static double scatter_of(const struct ab_test_point *point) {
  return fmax(sum_up(point, 0).scatter, sum_up(point, 1).scatter);
}

/* A few runs of one size may agree by luck: the noise used is at least that of most sizes of the
 * collective. */
static double usual_scatter(const struct ab_test *test, enum profile_collective collective) {
  double *values = calloc(test->count + 1, sizeof *values);
  size_t count = 0;
  for (size_t i = 0; values && i < test->count; i++) {
    if (test->points[i].collective == collective) {
      values[count++] = scatter_of(&test->points[i]);
    }
  }
  double middle = 0;
  if (count > 0) {
    quantile_sort(values, count);
    middle = values[count / 2];
  }
  free(values);
  return middle;
}

static void judge(struct ab_test_point *point, double usual) {
  point->default_us = sum_up(point, 0).median_us;
  point->profile_us = sum_up(point, 1).median_us;
  point->ratio = point->default_us > 0 ? point->profile_us / point->default_us : 1;
  point->tolerance = fmax(AB_TEST_LEAST_TOLERANCE, 2 * fmax(scatter_of(point), usual));
  point->is_slower = point->ratio > 1 + point->tolerance;
  point->is_faster = point->ratio < 1 - point->tolerance;
}

void ab_test_judge(struct ab_test *test, const struct profile *profile, uint32_t nodes,
                   uint32_t ppn) {
  for (size_t i = 0; i < test->count; i++) {
    struct ab_test_point *point = &test->points[i];
    judge(point, usual_scatter(test, point->collective));
    point->is_chosen = profile_find_row(profile_find_table(profile, point->collective, nodes, ppn),
                                        point->bytes) != NULL;
  }
}

/* The smallest measured size of the row from `bytes` on, or NULL. */
static const struct ab_test_point *next_point(const struct ab_test *test,
                                              enum profile_collective collective,
                                              const struct profile_row *row, uint64_t bytes) {
  const struct ab_test_point *next = NULL;
  for (size_t i = 0; i < test->count; i++) {
    const struct ab_test_point *point = &test->points[i];
    if (point->collective == collective && point->bytes >= bytes && point->bytes >= row->bytes_lo &&
        point->bytes < row->bytes_hi && (!next || point->bytes < next->bytes)) {
      next = point;
    }
  }
  return next;
}

/* Over all its sizes; one that has none is taken to. */
static bool does_gain(const struct ab_test *test, enum profile_collective collective,
                      const struct profile_row *row) {
  const struct ab_test_point *point = next_point(test, collective, row, row->bytes_lo);
  double sum = 0;
  bool has_points = point;
  for (; point; point = next_point(test, collective, row, point->bytes + 1)) {
    sum += log(point->ratio);
  }
  return !has_points || sum < 0;
}

static uint64_t midway(uint64_t a, uint64_t b) {
  return (uint64_t)ceil(sqrt((double)a * (double)b));
}

/* A row has to prove its gain. If runs scatter so much that being far slower is within their noise,
 * it has not. */
static bool must_go(const struct ab_test_point *point) {
  return point->is_slower || point->ratio > 1 + AB_TEST_MOST_DOUBT;
}

/* Cuts a row at its sizes that must go, halfway to their neighbours, and appends the parts that
 * gain to `rows`, which have room for all. Returns how many. */
static size_t cut_row(const struct ab_test *test, enum profile_collective collective,
                      struct profile_row row, struct profile_row *rows) {
  size_t count = 0;
  struct profile_row part = row;
  const struct ab_test_point *last = NULL, *point, *next;
  for (point = next_point(test, collective, &row, row.bytes_lo); point; point = next) {
    next = next_point(test, collective, &row, point->bytes + 1);
    if (must_go(point)) {
      part.bytes_hi = last ? midway(last->bytes, point->bytes) : part.bytes_lo;
      if (part.bytes_lo < part.bytes_hi && does_gain(test, collective, &part)) {
        rows[count++] = part;
      }
      part.bytes_lo = next ? midway(point->bytes, next->bytes) : row.bytes_hi;
      part.bytes_hi = row.bytes_hi;
    }
    last = must_go(point) ? NULL : point;
  }
  if (part.bytes_lo < part.bytes_hi && does_gain(test, collective, &part)) {
    rows[count++] = part;
  }
  return count;
}

static bool is_same_range(const struct profile_row *a, const struct profile_row *b) {
  return a->bytes_lo == b->bytes_lo && a->bytes_hi == b->bytes_hi;
}

/* Returns how many rows went or became smaller; without memory all of them go. */
static size_t drop_from_table(const struct ab_test *test, struct profile_table *table) {
  size_t kept = 0, changed = 0, count = table->row_count;
  struct profile_row *rows = calloc(count + test->count + 1, sizeof *rows);
  for (size_t i = 0; rows && i < count; i++) {
    size_t parts = cut_row(test, table->collective, table->rows[i], rows + kept);
    changed += parts != 1 || !is_same_range(&rows[kept], &table->rows[i]);
    kept += parts;
  }
  free(table->rows);
  table->rows = rows;
  table->row_count = kept;
  return rows ? changed : count;
}

size_t ab_test_drop_rows(const struct ab_test *test, struct profile *profile, uint32_t nodes,
                         uint32_t ppn) {
  size_t dropped = 0, kept = 0;
  for (size_t i = 0; i < profile->table_count; i++) {
    struct profile_table *table = &profile->tables[i];
    if (table->nodes == nodes && table->ppn == ppn) {
      dropped += drop_from_table(test, table);
    }
    if (table->row_count > 0) {
      profile->tables[kept++] = *table;
    } else {
      free(table->rows);
    }
  }
  profile->table_count = kept;
  return dropped;
}

struct ab_test_sums ab_test_sum(const struct ab_test *test) {
  struct ab_test_sums sums = { 0 };
  double logs = 0;
  for (size_t i = 0; i < test->count; i++) {
    const struct ab_test_point *point = &test->points[i];
    sums.faster += point->is_faster && point->is_chosen;
    sums.slower += point->is_slower && point->is_chosen;
    sums.control = fmax(sums.control, point->is_chosen ? 0 : fabs(point->ratio - 1));
    logs += log(point->ratio);
  }
  sums.geomean = test->count > 0 ? exp(logs / (double)test->count) : 1;
  return sums;
}

void ab_test_free(struct ab_test *test) {
  free(test->points);
  *test = (struct ab_test){ 0 };
}
