/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up runs size by size, and holds the rows of the profile against them. */
#include "tuner_plugin/tools/calibrate/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/tools/calibrate/label.h"

#define LEAST_TOLERANCE 0.03

static int compare_times(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static struct label_summary summarize(const double *times_us, size_t count) {
  double sorted[COMPARE_ROUNDS_MAX];
  memcpy(sorted, times_us, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare_times);
  return label_summarize(sorted, count);
}

static double time_of(const struct bench_row *row) {
  size_t count;
  double *times = bench_sort_calls(row, &count);
  double result = times ? label_summarize(times, count).median_us : bench_time_us(row);
  free(times);
  return result;
}

static struct compare_point *find_or_add(struct compare *compare, const struct bench_row *row) {
  for (size_t i = 0; i < compare->count; i++) {
    struct compare_point *point = &compare->points[i];
    if (point->collective == row->collective && point->bytes == row->bytes) {
      return point;
    }
  }
  struct compare_point *points =
      reallocarray(compare->points, compare->count + 1, sizeof *compare->points);
  if (!points) {
    return NULL;
  }
  compare->points = points;
  points[compare->count] =
      (struct compare_point){ .collective = row->collective, .bytes = row->bytes };
  return &points[compare->count++];
}

int compare_add(struct compare *compare, const struct bench_row *row, bool is_profile) {
  struct compare_point *point = find_or_add(compare, row);
  if (!point) {
    return -ENOMEM;
  }
  compare->wrong += row->wrong;
  size_t *count = &point->run_count[is_profile];
  if (*count < COMPARE_ROUNDS_MAX) {
    point->runs_us[is_profile][(*count)++] = time_of(row);
  }
  return 0;
}

static const struct profile_row *find_row(const struct profile_table *table, uint64_t bytes) {
  for (size_t i = 0; table && i < table->row_count; i++) {
    if (bytes >= table->rows[i].bytes_lo && bytes < table->rows[i].bytes_hi) {
      return &table->rows[i];
    }
  }
  return NULL;
}

static void judge(struct compare_point *point) {
  struct label_summary sides[2] = { summarize(point->runs_us[0], point->run_count[0]),
                                    summarize(point->runs_us[1], point->run_count[1]) };
  point->default_us = sides[0].median_us;
  point->profile_us = sides[1].median_us;
  point->ratio = point->default_us > 0 ? point->profile_us / point->default_us : 1;
  double noise = 0;
  for (int side = 0; side < 2; side++) {
    double scatter = 1.4826 * sides[side].mad_us;
    noise = sides[side].median_us > 0 ? fmax(noise, scatter / sides[side].median_us) : noise;
  }
  point->tolerance = fmax(LEAST_TOLERANCE, 2 * noise);
  point->is_slower = point->ratio > 1 + point->tolerance;
  point->is_faster = point->ratio < 1 - point->tolerance;
}

void compare_judge(struct compare *compare, const struct profile *profile, uint32_t nodes,
                   uint32_t ppn) {
  for (size_t i = 0; i < compare->count; i++) {
    struct compare_point *point = &compare->points[i];
    judge(point);
    point->is_chosen =
        find_row(profile_find_table(profile, point->collective, nodes, ppn), point->bytes) != NULL;
  }
}

static bool does_hold(const struct compare *compare, enum profile_collective collective,
                      const struct profile_row *row) {
  double sum = 0;
  size_t count = 0;
  bool is_slower = false;
  for (size_t i = 0; i < compare->count; i++) {
    const struct compare_point *point = &compare->points[i];
    if (point->collective == collective && point->bytes >= row->bytes_lo &&
        point->bytes < row->bytes_hi) {
      sum += log(point->ratio);
      is_slower |= point->is_slower;
      count++;
    }
  }
  return count == 0 || (!is_slower && sum < 0);
}

static size_t drop_from_table(const struct compare *compare, struct profile_table *table) {
  size_t kept = 0, count = table->row_count;
  for (size_t i = 0; i < count; i++) {
    struct profile_row row = table->rows[i];
    if (does_hold(compare, table->collective, &row)) {
      table->rows[kept++] = row;
    }
  }
  table->row_count = kept;
  return count - kept;
}

size_t compare_drop_rows(const struct compare *compare, struct profile *profile, uint32_t nodes,
                         uint32_t ppn) {
  size_t dropped = 0, kept = 0;
  for (size_t i = 0; i < profile->table_count; i++) {
    struct profile_table *table = &profile->tables[i];
    if (table->nodes == nodes && table->ppn == ppn) {
      dropped += drop_from_table(compare, table);
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

/* ---- sums ---- */

size_t compare_count_slower(const struct compare *compare) {
  size_t count = 0;
  for (size_t i = 0; i < compare->count; i++) {
    count += compare->points[i].is_slower && compare->points[i].is_chosen;
  }
  return count;
}

size_t compare_count_faster(const struct compare *compare) {
  size_t count = 0;
  for (size_t i = 0; i < compare->count; i++) {
    count += compare->points[i].is_faster && compare->points[i].is_chosen;
  }
  return count;
}

double compare_control(const struct compare *compare) {
  double worst = 0;
  for (size_t i = 0; i < compare->count; i++) {
    if (!compare->points[i].is_chosen) {
      worst = fmax(worst, fabs(compare->points[i].ratio - 1));
    }
  }
  return worst;
}

double compare_geomean(const struct compare *compare) {
  double sum = 0;
  for (size_t i = 0; i < compare->count; i++) {
    sum += log(compare->points[i].ratio);
  }
  return compare->count > 0 ? exp(sum / (double)compare->count) : 1;
}

void compare_free(struct compare *compare) {
  free(compare->points);
  *compare = (struct compare){ 0 };
}
