/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what a calibration tries, as text that a launcher can pass to every rank.
 * Owns: nothing; the entries are the caller's.  Threads: any.
 * Blocks: never.  Fails: -EINVAL for bad text; the message names the place and what is accepted.
 *
 *   seed=7/run=6/channels=0,2/allreduce:8,64K/allgather:1M
 *
 * Parts are separated by slashes; nothing in it is special to a shell. The first three are
 * optional: shuffle seed; calls of small sizes in a row; numbers of channels to try, 0 for NCCL's
 * own. The others are collectives with sizes, in bytes as NCCL counts for its tuner, of which every
 * cell is tried. No collective and size may come twice. */
#ifndef TUNER_PLUGIN_CALIBRATE_PLAN_H
#define TUNER_PLUGIN_CALIBRATE_PLAN_H

#include "tuner_plugin/calibrate/schedule.h"
#include "tuner_plugin/decide/costs.h"

enum { PLAN_ERROR_MAX = 160 };

struct plan_entry {
  enum profile_collective collective;
  uint64_t bytes;
};

struct plan {
  uint64_t seed;
  uint32_t run;
  uint16_t channels[PLAN_CHANNELS_MAX];
  size_t channel_count;
  struct plan_entry *entries; /* the caller's; in the order of the text */
  size_t entry_count;
};

/* Fills `entries`, of PLAN_ENTRIES_MAX elements. `error` says what is wrong. */
int plan_parse(const char *text, struct plan_entry *entries, struct plan *plan,
               char error[PLAN_ERROR_MAX]);

/* Place of the entry in entries[], or -1. */
int plan_find(const struct plan *plan, int collective, uint64_t bytes);

/* "ring.simple", "tree.ll@2"; and back: -EINVAL if the text is no cell. */
enum { PLAN_CELL_TEXT_MAX = 40 };
const char *plan_format_cell(struct schedule_cell cell, char text[PLAN_CELL_TEXT_MAX]);
int plan_parse_cell(const char *text, struct schedule_cell *cell);

/* The cells that are open to calls of a size, given NCCL's costs: NCCL's own choice, then every
 * cell that is worth it (limits.h) for each number of channels. Beyond SCHEDULE_CELLS_MAX the last
 * ones are left out. */
void plan_open(const struct plan *plan, uint64_t bytes, struct decide_costs costs,
               struct schedule_set *set);

#endif
