/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_json.h. */
#include "tuner_plugin/tools/calibrate/bench_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantile.h"

static const char *const operations[PROFILE_COLLECTIVE_COUNT] = {
  [PROFILE_BROADCAST] = "broadcast",  [PROFILE_REDUCE] = "reduce",
  [PROFILE_ALLGATHER] = "all_gather", [PROFILE_REDUCESCATTER] = "reduce_scatter",
  [PROFILE_ALLREDUCE] = "all_reduce",
};

const char *bench_json_operation(enum profile_collective collective) {
  return operations[collective];
}

/* The times of a place's calls; false: there are none, though it was run. */
static bool take_place(const json_t *from, int place, struct bench_json_row *row) {
  static const char *const keys[] = { "out_of_place", "in_place" };
  static const char *const calls_keys[] = { "out_of_place_per_iter", "in_place_per_iter" };
  const json_t *object = json_object_get(from, keys[place]);
  if (!json_is_object(object)) {
    return true; /* cannot be run so */
  }
  const json_t *list = json_object_get(json_object_get(from, calls_keys[place]), "times_us");
  size_t count = json_array_size(list);
  double *calls_us = row->places[place].calls_us = calloc(count + 1, sizeof *calls_us);
  bool is_good = calls_us && count > 0;
  for (size_t i = 0; is_good && i < count; i++) {
    calls_us[i] = json_number_value(json_array_get(list, i));
    is_good = calls_us[i] > 0;
  }
  row->places[place].count = count;
  row->wrong += (uint64_t)json_number_value(json_object_get(object, "nwrong"));
  return is_good;
}

static bool take_median(struct bench_json_row *row) {
  size_t count = 0;
  double *times = calloc(row->places[0].count + row->places[1].count + 1, sizeof *times);
  for (int place = 0; times && place < BENCH_JSON_PLACES; place++) {
    size_t calls = row->places[place].count, first = (calls + 2) / 3;
    if (first < calls) {
      memcpy(times + count, row->places[place].calls_us + first, (calls - first) * sizeof *times);
      count += calls - first;
    }
  }
  row->median_us = times ? quantile_median(times, count) : 0;
  free(times);
  return row->median_us > 0;
}

static bool take_row(const json_t *from, enum profile_collective collective,
                     struct bench_json *bench) {
  json_int_t bytes = json_integer_value(json_object_get(from, "size"));
  if (bytes <= 0) {
    return true;
  }
  struct bench_json_row *row = &bench->rows[bench->count++];
  *row = (struct bench_json_row){ .collective = collective, .bytes = (uint64_t)bytes };
  return take_place(from, 0, row) && take_place(from, 1, row) && take_median(row);
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
  for (size_t i = 0; i < bench->count; i++) {
    for (int place = 0; place < BENCH_JSON_PLACES; place++) {
      free(bench->rows[i].places[place].calls_us);
    }
  }
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
