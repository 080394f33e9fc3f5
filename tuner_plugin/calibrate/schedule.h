/* SPDX-License-Identifier: Apache-2.0 */
/* schedule: which cell each call of a calibration tries: seed + call index + call -> cell.
 * Owns: nothing; all state is in the caller's structs.  Threads: any, on different structs.
 * Blocks: never.  Fails: cannot; a call that is not in the plan is left to NCCL.
 *
 * PURE, as all ranks must choose alike and stratus replays it to learn what each call was. The
 * k-th call of one collective and size on a communicator gets a cell by k alone, so that calls of
 * other sizes in between, in whatever order, change nothing.
 *
 *   call    0 1 2 3 | 4 4 5 5 6 6 7 7 | ...     four cells, runs of two calls
 *   cell    2 0 3 1 | 1 1 3 3 0 0 2 2 | ...     each block is a permutation, drawn from the seed
 *
 * Every block tries every cell once, so a temporary slowdown of the network affects all cells
 * alike. The first block is not counted: a cell's first use sets up its connections. After it come
 * runs of the same cell, whose first third is not counted either: caches, buffers and the burst
 * credit that a cloud grants a flow are then in the state that this cell itself leaves. For large
 * messages fewer calls are enough. */
#ifndef TUNER_PLUGIN_CALIBRATE_SCHEDULE_H
#define TUNER_PLUGIN_CALIBRATE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"
#include "tuner_plugin/calibrate/limits.h"

struct schedule_cell {
  uint8_t algorithm; /* enum profile_algorithm */
  uint8_t protocol;  /* enum profile_protocol */
  uint16_t channels; /* most channels; 0: NCCL's own number */
};

/* The cells of one collective and size. cells[0] is NCCL's own choice, left untouched. */
struct schedule_set {
  struct schedule_cell cells[SCHEDULE_CELLS_MAX];
  size_t count; /* 0: NCCL offers nothing */
};

/* What identifies a stream of calls. */
struct schedule_key {
  uint64_t seed;
  uint32_t run; /* most calls in a run; 0 is 1 */
  enum profile_collective collective;
  uint64_t bytes;
};

struct schedule_turn {
  size_t cell;     /* place in cells[] */
  bool is_counted; /* else it sets up what the cell uses */
};

/* What call number `call`, from 0, does; `count` is not 0. */
struct schedule_turn schedule_pick(struct schedule_key key, size_t count, uint64_t call);

bool schedule_is_same_cell(struct schedule_cell a, struct schedule_cell b);
bool schedule_is_same(const struct schedule_set *a, const struct schedule_set *b);

#endif
