/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic: an invented cluster whose true times are known, and what a library that chooses by
 * another idea of them believes.
 * Owns: nothing.  Threads: any, on different structs.
 * Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_SYNTHETIC_H
#define TESTS_LIB_SYNTHETIC_H

#include <stdbool.h>

#include "tuner_plugin/decide/costs.h"
#include "tuner_plugin/model/sample_file.h"

enum { SYNTHETIC_SHIFT_FIRST = 3, SYNTHETIC_SHIFT_LAST = 26 };

struct synthetic {
  uint64_t random;
  int ppn;
  double noise;     /* standard deviation of a call's time, as a share of it: 0.05 to 0.15 */
  double bus_gbs;   /* of a host */
  double inside_us; /* of a hop inside of a host, with protocol Simple */
  bool has_ll128;
  double network_us; /* true latency of the network, which is believed to be none */
  /* What is true, over what is believed. */
  double latency_factors[PROFILE_COLLECTIVE_COUNT][COSTS_CELLS];
  double rate_factors[PROFILE_COLLECTIVE_COUNT][COSTS_CELLS];
};

/* Another cluster for each seed. */
void synthetic_draw(struct synthetic *cluster, uint64_t seed);

enum synthetic_view { SYNTHETIC_BELIEVED, SYNTHETIC_TRUE };

/* Of a call in this cell; below 0: the cell is not there. Forms and figures are like those of
 * NCCL's cost model, with what makes it hard to fit: a tree's bandwidth has a dip, and a ring's
 * latency rises at some size. */
double synthetic_us(const struct synthetic *cluster, enum synthetic_view view,
                    enum profile_collective collective, int nodes, unsigned cell, uint64_t bytes);

/* As NCCL hands them to its tuner. */
void synthetic_costs(const struct synthetic *cluster, enum profile_collective collective, int nodes,
                     uint64_t bytes, float costs[COSTS_CELLS]);

/* Measures every cell and what is chosen by itself at the powers of two in several launches, with
 * noise of calls and of launches. Returns how many samples were written; there is room for
 * SYNTHETIC_SAMPLES_MAX. */
enum { SYNTHETIC_LAUNCHES = 4, SYNTHETIC_SAMPLES_MAX = SYNTHETIC_LAUNCHES * 24 * 22 };
size_t synthetic_measure(struct synthetic *cluster, enum profile_collective collective, int nodes,
                         struct sample *samples);

#endif
