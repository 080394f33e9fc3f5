/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic: an invented cluster whose true times are known: NCCL's model with other constants.
 * Owns: nothing.  Threads: any, on different structs.
 * Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_SYNTHETIC_H
#define TESTS_LIB_SYNTHETIC_H

#include "common/sample.h"
#include "tuner_plugin/model/nccl_model.h"

enum { SYNTHETIC_SHIFT_FIRST = 3, SYNTHETIC_SHIFT_LAST = 26 };

struct synthetic {
  uint64_t random;
  int ppn;
  double noise; /* standard deviation of a call's time, as a share of it: 0.05 to 0.15 */
  struct nccl_topology told; /* what NCCL believes; nodes vary */
  struct nccl_topology real; /* with the network's true latency */
  double latency_factors[PROFILE_COLLECTIVE_COUNT][PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
  double rate_factors[PROFILE_COLLECTIVE_COUNT][PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
};

/* Another cluster for each seed. */
void synthetic_draw(struct synthetic *cluster, uint64_t seed);

/* What NCCL would compute for `nodes`, and what is true. */
void synthetic_models(const struct synthetic *cluster, int nodes, struct nccl_model *told,
                      struct nccl_model *real);

double synthetic_us(const struct nccl_model *real, enum profile_collective collective,
                    struct nccl_cell cell, uint64_t bytes);

/* Measures every cell and NCCL's default at the powers of two in several launches, with noise of
 * calls and of launches. Returns how many samples were written; there is room for
 * SYNTHETIC_SAMPLES_MAX. */
enum { SYNTHETIC_LAUNCHES = 4, SYNTHETIC_SAMPLES_MAX = SYNTHETIC_LAUNCHES * 24 * 22 };
size_t synthetic_measure(struct synthetic *cluster, enum profile_collective collective, int nodes,
                         struct sample *samples);

#endif
