/* SPDX-License-Identifier: Apache-2.0 */
/* estimates: what each way to run a collective takes at each size, from samples.
 * Owns: the arrays of a struct estimates, until estimates_free.  Threads: any, on different
 * structs. Blocks: never.  Fails: -ENOMEM; the struct is then empty.
 *
 * Runs are hours or hosts apart, so a cell is compared only with NCCL's choice of the same run:
 * each run is scaled so that all have the same default, and samples of runs without one do not
 * count. */
#ifndef TUNER_PLUGIN_MODEL_ESTIMATES_H
#define TUNER_PLUGIN_MODEL_ESTIMATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/model/sample_file.h"

/* A cell with a number of channels; 0: NCCL's own number, also where NCCL chose the cell itself. */
struct way {
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
  uint32_t channels;
};

struct estimate {
  double us;    /* 0: was not measured */
  double noise; /* standard error of `us`, as a share of it */
};

/* Of one collective on one shape. */
struct estimates {
  uint64_t *sizes; /* at which NCCL's own choice was measured, ascending */
  size_t *usual;   /* which of the ways that was, at each size */
  size_t size_count;
  struct way *ways; /* by algorithm, protocol, channels */
  size_t way_count;
  struct estimate *all; /* see estimates_at */
};

static inline const struct estimate *estimates_at(const struct estimates *estimates, size_t size,
                                                  size_t way) {
  return &estimates->all[size * estimates->way_count + way];
}

/* Sorts samples, so that those of one collective and shape stand together. */
void estimates_sort(struct sample *samples, size_t count);
/* How many samples are of the first one's collective and shape. */
size_t estimates_count_shape(const struct sample *samples, size_t count);

/* From samples of one collective and shape, sorted, whose times it scales. */
int estimates_make(struct sample *samples, size_t count, struct estimates *out);
void estimates_free(struct estimates *estimates);

#endif
