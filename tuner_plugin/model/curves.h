/* SPDX-License-Identifier: Apache-2.0 */
/* curves: samples as times over sizes, one curve for each way to run a collective on one shape.
 * Owns: the curves of a struct curves, until curves_free.  Threads: any, on different structs.
 * Blocks: never.  Fails: -ENOMEM; the struct is then empty. */
#ifndef TUNER_PLUGIN_MODEL_CURVES_H
#define TUNER_PLUGIN_MODEL_CURVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/model/sample_file.h"

/* What was measured at one size. */
struct curve_point {
  uint64_t bytes;
  double us;
  double noise;                     /* standard error of `us`, as a share of it */
  enum profile_algorithm algorithm; /* of a default curve: what NCCL chose there */
  enum profile_protocol protocol;
};

struct curve {
  enum profile_collective collective;
  uint32_t nodes;
  uint32_t ppn;
  bool is_default; /* NCCL chose; else all points are of one cell with these channels, requested or
                      chosen by NCCL */
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
  uint32_t channels;
  struct curve_point *points; /* ascending in bytes */
  size_t count;
};

struct curves {
  struct curve *curves; /* by collective, nodes, ppn; the default first */
  size_t count;
};

int curves_make(const struct sample *samples, size_t count, struct curves *out);
void curves_free(struct curves *curves);

/* What was measured at this very size, or NULL. */
const struct curve_point *curve_find(const struct curve *curve, uint64_t bytes);

#endif
