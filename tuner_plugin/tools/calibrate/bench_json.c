/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_json.h. */
#include "tuner_plugin/tools/calibrate/bench_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/quantile.h"

static const char *const operations[PROFILE_COLLECTIVE_COUNT] = {
  [PROFILE_BROADCAST] = "broadcast",  [PROFILE_REDUCE] = "reduce",
  [PROFILE_ALLGATHER] = "all_gather", [PROFILE_REDUCESCATTER] = "reduce_scatter",
  [PROFILE_ALLREDUCE] = "all_reduce",
};

const char *bench_json_operation(enum profile_collective collective) {
  return operations[collective];
}

/* Adds the later times of a place's calls; false: there are none, though it was run. */
static bool take_place(const json_t *from, const char *name, const char *calls_name,
                       struct bench_json_row *row, double *times_us) {
  const json_t *object = json_object_get(from, name);
  const json_t *list = json_object_get(json_object_get(from, calls_name), "times_us");
  size_t count = json_array_size(list);
  bool is_good = count > 0;
  if (!json_is_object(object)) {
    return true; /* cannot be run so */
  }
  for (size_t i = 0; is_good && i < count; i++) {
    double us = json_number_value(json_array_get(list, i));
    is_good = us > 0;
    if (i >= (count + 2) / 3) {
      times_us[row->calls++] = us;
    }
  }
  row->wrong += (uint64_t)json_number_value(json_object_get(object, "nwrong"));
  return is_good;
}

static size_t calls_of(const json_t *from, const char *name) {
  return json_array_size(json_object_get(json_object_get(from, name), "times_us"));
}

static bool take_times(const json_t *from, struct bench_json_row *row) {
  static const char out[] = "out_of_place_per_iter", in[] = "in_place_per_iter";
  double *times_us = calloc(calls_of(from, out) + calls_of(from, in) + 1, sizeof *times_us);
  bool is_good = times_us && take_place(from, "out_of_place", out, row, times_us) &&
                 take_place(from, "in_place", in, row, times_us);
  if (is_good) {
    row->median_us = quantile_median(times_us, row->calls);
    for (uint32_t i = 0; i < row->calls; i++) {
      times_us[i] = fabs(times_us[i] - row->median_us);
    }
    row->mad_us = quantile_median(times_us, row->calls);
  }
  free(times_us);
  return is_good && row->median_us > 0;
}

static bool take_row(const json_t *from, enum profile_collective collective,
                     struct bench_json *bench) {
  json_int_t bytes = json_integer_value(json_object_get(from, "size"));
  if (bytes <= 0) {
    return true;
  }
  struct bench_json_row *row = &bench->rows[bench->count++];
  *row = (struct bench_json_row){ .collective = collective, .bytes = (uint64_t)bytes };
  return take_times(from, row);
}

int bench_json_read(const char *path, enum profile_collective collective, struct bench_json *bench,
                    char error[BENCH_JSON_ERROR_MAX]) {
  *bench = (struct bench_json){ 0 };
  json_error_t json_error;
  json_t *root = json_load_file(path, 0, &json_error);
  const json_t *rows = json_object_get(root, "results");
  bench->rows = calloc(json_array_size(rows) + 1, sizeof *bench->rows);
  bool is_good = bench->rows != NULL;
  for (size_t i = 0; is_good && i < json_array_size(rows); i++) {
    is_good = take_row(json_array_get(rows, i), collective, bench);
  }
  if (is_good && bench->count > 0) {
    json_decref(root);
    return 0;
  }
  snprintf(error, BENCH_JSON_ERROR_MAX, "%.300s: %s", path,
           !root      ? json_error.text
           : !is_good ? "a result has no times of single calls"
                      : "no results in it");
  json_decref(root);
  bench_json_free(bench);
  return -EINVAL;
}

void bench_json_free(struct bench_json *bench) {
  free(bench->rows);
  *bench = (struct bench_json){ 0 };
}

const struct bench_json_row *bench_json_find(const struct bench_json *bench,
                                             enum profile_collective collective, uint64_t bytes) {
  for (size_t i = 0; i < bench->count; i++) {
    if (bench->rows[i].collective == collective && bench->rows[i].bytes == bytes) {
      return &bench->rows[i];
    }
  }
  return NULL;
}
