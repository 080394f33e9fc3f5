/* SPDX-License-Identifier: Apache-2.0 */
/* costs: NCCL's cost table of one call, what NCCL chooses by it, and the text of its cells.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cell_parse, -EINVAL for text that is none.
 */
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

static inline struct profile_cell cell_of_costs(unsigned cell, uint32_t channels) {
  return (struct profile_cell){ (enum profile_algorithm)(cell / PROFILE_PROTOCOL_COUNT),
                                (enum profile_protocol)(cell % PROFILE_PROTOCOL_COUNT), channels };
}

/* "ring.simple", "tree.ll@2"; and back. */
enum { CELL_TEXT_MAX = 40 };
const char *cell_format(struct profile_cell cell, char text[CELL_TEXT_MAX]);
int cell_parse(const char *text, struct profile_cell *cell);

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

/* What a calibration may try for calls of a size: a bit for each costs_cell that is worth it
 * (limits.h), NCCL's own choice, *usual, among them. 0: NCCL offers nothing. */
uint32_t costs_open(uint64_t bytes, struct decide_costs costs, unsigned *usual);

#endif
