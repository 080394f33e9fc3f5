/* SPDX-License-Identifier: Apache-2.0 */
/* bench_json: the results of a benchmark, from the JSON that nccl-tests write.
 * Owns: the rows of a struct bench_json, until bench_json_free.  Threads: the main thread.
 * Blocks: on the file.  Fails: -EINVAL with a text that names the file; it is then empty.
 *
 * Times of single calls are in the files from 2.19.2 on (-I 1 -J FILE). Sizes of 0 bytes are
 * skipped. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_BENCH_JSON_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_BENCH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

enum { BENCH_JSON_ERROR_MAX = 512 };

struct bench_json_row {
  enum profile_collective collective;
  uint64_t bytes; /* as NCCL counts for its tuner */
  /* Of the later two thirds of the calls out of place, and of those in place. The first third warms
   * up, and may use the burst credit that a cloud grants to idle flows. */
  uint32_t calls;
  double median_us, mad_us; /* and the median absolute deviation from it */
  uint64_t wrong;           /* values */
};

struct bench_json {
  struct bench_json_row *rows;
  size_t count;
};

/* `collective` is the one that was run; the files do not name it. */
int bench_json_read(const char *path, enum profile_collective collective, struct bench_json *bench,
                    char error[BENCH_JSON_ERROR_MAX]);
void bench_json_free(struct bench_json *bench);

/* The row of this collective and size, or NULL. */
const struct bench_json_row *bench_json_find(const struct bench_json *bench,
                                             enum profile_collective collective, uint64_t bytes);

/* nccl-tests' names: "all_reduce", as in all_reduce_perf. */
const char *bench_json_operation(enum profile_collective collective);

#endif
