/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_json.h. */
#include "tuner_plugin/tools/calibrate/bench_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const operations[PROFILE_COLLECTIVE_COUNT] = {
  [PROFILE_BROADCAST] = "broadcast",  [PROFILE_REDUCE] = "reduce",
  [PROFILE_ALLGATHER] = "all_gather", [PROFILE_REDUCESCATTER] = "reduce_scatter",
  [PROFILE_ALLREDUCE] = "all_reduce",
};

const char *bench_json_operation(enum profile_collective collective) {
  return operations[collective];
}

__attribute__((format(printf, 3, 4))) static int fail(char *error, const char *path,
                                                      const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = snprintf(error, BENCH_JSON_ERROR_MAX, "%.300s: ", path);
  vsnprintf(error + length, (size_t)(BENCH_JSON_ERROR_MAX - length), format, arguments);
  va_end(arguments);
  return -EINVAL;
}

static int take_calls(const json_t *list, struct bench_json_times *times) {
  size_t count = json_array_size(list);
  if (count == 0) {
    return 0;
  }
  times->calls_us = calloc(count, sizeof *times->calls_us);
  if (!times->calls_us) {
    return -ENOMEM;
  }
  times->count = count;
  for (size_t i = 0; i < count; i++) {
    times->calls_us[i] = json_number_value(json_array_get(list, i));
    if (!(times->calls_us[i] > 0)) {
      return -EINVAL;
    }
  }
  return 0;
}

static const char *const place_keys[BENCH_JSON_PLACES] = { "out_of_place", "in_place" };

static int take_place(const json_t *from, int place, struct bench_json_row *row) {
  static const char *const calls_keys[] = { "out_of_place_per_iter", "in_place_per_iter" };
  const json_t *object = json_object_get(from, place_keys[place]);
  struct bench_json_times *times = &row->places[place];
  if (!json_is_object(object)) {
    return 0; /* cannot be run so */
  }
  times->time_us = json_number_value(json_object_get(object, "time"));
  row->wrong += (uint64_t)json_number_value(json_object_get(object, "nwrong"));
  const json_t *calls = json_object_get(from, calls_keys[place]);
  return times->time_us > 0 ? take_calls(json_object_get(calls, "times_us"), times) : -EINVAL;
}

static int take_row(const json_t *from, enum profile_collective collective,
                    struct bench_json *bench) {
  json_int_t bytes = json_integer_value(json_object_get(from, "size"));
  if (bytes <= 0) {
    return 0;
  }
  struct bench_json_row *row = &bench->rows[bench->count++];
  *row = (struct bench_json_row){
    .collective = collective,
    .bytes = (uint64_t)bytes,
  };
  for (int place = 0; place < BENCH_JSON_PLACES; place++) {
    int result = take_place(from, place, row);
    if (result < 0) {
      return result;
    }
  }
  return 0;
}

int bench_json_read(const char *path, enum profile_collective collective, struct bench_json *bench,
                    char error[BENCH_JSON_ERROR_MAX]) {
  *bench = (struct bench_json){ 0 };
  json_error_t json_error;
  json_t *root = json_load_file(path, 0, &json_error);
  const json_t *rows = json_object_get(root, "results");
  if (!json_is_array(rows)) {
    json_decref(root);
    return fail(error, path, "%s", root ? "no list of results in it" : json_error.text);
  }
  int result = 0;
  bench->rows = calloc(json_array_size(rows) + 1, sizeof *bench->rows);
  for (size_t i = 0; bench->rows && result == 0 && i < json_array_size(rows); i++) {
    result = take_row(json_array_get(rows, i), collective, bench);
    if (result < 0) {
      fail(error, path, "result %zu has no valid times", i + 1);
    }
  }
  if (!bench->rows) {
    result = fail(error, path, "out of memory");
  } else if (result == 0 && bench->count == 0) {
    result = fail(error, path, "no results in it");
  }
  json_decref(root);
  if (result < 0) {
    bench_json_free(bench);
  }
  return result;
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

double bench_json_time_us(const struct bench_json_row *row) {
  double sum = 0;
  int count = 0;
  for (int place = 0; place < BENCH_JSON_PLACES; place++) {
    sum += row->places[place].time_us;
    count += row->places[place].time_us > 0;
  }
  return count > 0 ? sum / count : 0;
}

double *bench_json_calls(const struct bench_json_row *row, size_t *count) {
  *count = 0;
  double *times = calloc(row->places[0].count + row->places[1].count + 1, sizeof *times);
  for (int place = 0; times && place < BENCH_JSON_PLACES; place++) {
    const struct bench_json_times *measured = &row->places[place];
    for (size_t i = (measured->count + 2) / 3; measured->calls_us && i < measured->count; i++) {
      times[(*count)++] = measured->calls_us[i];
    }
  }
  if (*count == 0) {
    free(times);
    return NULL;
  }
  return times;
}
