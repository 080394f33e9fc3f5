/* SPDX-License-Identifier: Apache-2.0 */
/* cell: what a launch of a calibration tries: an algorithm, a protocol and a number of channels.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cell_parse, -EINVAL for text that is none.
 *
 * PURE, as all ranks must choose alike. */
#ifndef TUNER_PLUGIN_CALIBRATE_CELL_H
#define TUNER_PLUGIN_CALIBRATE_CELL_H

#include "tuner_plugin/calibrate/limits.h"
#include "tuner_plugin/decide/costs.h"

struct cell {
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
  uint32_t channels; /* most channels; 0: NCCL's own number */
};

/* "ring.simple", "tree.ll@2"; and back. */
enum { CELL_TEXT_MAX = 40 };
const char *cell_format(struct cell cell, char text[CELL_TEXT_MAX]);
int cell_parse(const char *text, struct cell *cell);

static inline struct cell cell_of_costs(unsigned place, uint32_t channels) {
  return (struct cell){ costs_cell_algorithm(place), costs_cell_protocol(place), channels };
}

/* What is open to calls of a size by NCCL's costs: a bit for each costs_cell that is worth it
 * (limits.h), NCCL's own choice, *usual, among them. 0: NCCL offers nothing. */
uint32_t cell_open(uint64_t bytes, struct decide_costs costs, unsigned *usual);

#endif
