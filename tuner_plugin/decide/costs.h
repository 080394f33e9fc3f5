/* SPDX-License-Identifier: Apache-2.0 */
/* costs: NCCL's cost table of one call, and what NCCL chooses by it.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TUNER_PLUGIN_DECIDE_COSTS_H
#define TUNER_PLUGIN_DECIDE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

/* One number for a cell, its place in the cost table of every release: they have three protocols.
 */
enum {
  COSTS_CELLS = PROFILE_ALGORITHM_COUNT * PROFILE_PROTOCOL_COUNT,
  COSTS_UNKNOWN_CELL = UINT8_MAX - 1, /* of a release that has more */
};

static inline unsigned costs_cell(unsigned algorithm, unsigned protocol) {
  return algorithm * PROFILE_PROTOCOL_COUNT + protocol;
}

static inline enum profile_algorithm costs_cell_algorithm(unsigned cell) {
  return (enum profile_algorithm)(cell / PROFILE_PROTOCOL_COUNT);
}

static inline enum profile_protocol costs_cell_protocol(unsigned cell) {
  return (enum profile_protocol)(cell % PROFILE_PROTOCOL_COUNT);
}

/* Microseconds of every (algorithm, protocol), row-major; negative: not available. */
struct decide_costs {
  float *us;
  int algos;
  int protos;
};

/* -1 for what the table does not have: 2.22 has 6 algorithms, without PAT. */
static inline float costs_at(struct decide_costs costs, unsigned algorithm, unsigned protocol) {
  bool is_inside = algorithm < (unsigned)costs.algos && protocol < (unsigned)costs.protos;
  return is_inside ? costs.us[(size_t)algorithm * (size_t)costs.protos + protocol] : -1.0f;
}

struct costs_choice {
  unsigned cell; /* or COSTS_UNKNOWN_CELL */
  float us;
};

/* NCCL's own choice: the first of the cheapest cells that are not negative. False: there is none.
 */
bool costs_choose(struct decide_costs costs, struct costs_choice *choice);

#endif
