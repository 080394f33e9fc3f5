/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what a calibration tries, as text that a launcher can pass to every rank.
 * Owns: nothing; the entries are the caller's.  Threads: any.
 * Blocks: never.  Fails: -EINVAL for bad text; the message names the place and what is accepted.
 *
 *   seed=7/run=6/channels=0,2/allreduce:8,64K=all/allreduce:1M=tree.simple,ring.simple@2
 *
 * Parts are separated by slashes; nothing in it is special to a shell. The first three are optional
 * and come first: shuffle seed; calls of small sizes in a row; numbers of channels that `all`
 * tries, 0 for NCCL's own. Then come collectives with their sizes, in bytes as NCCL counts for its
 * tuner, and what to try there: `all` for every cell that NCCL offers, algorithm.protocol,
 * algorithm.protocol@channels, or `default` for NCCL's choice, which is always tried. No collective
 * and size may come twice. */
#ifndef TUNER_PLUGIN_CALIBRATE_PLAN_H
#define TUNER_PLUGIN_CALIBRATE_PLAN_H

#include "tuner_plugin/calibrate/schedule.h"
#include "tuner_plugin/decide/costs.h"

enum { PLAN_ERROR_MAX = 160 };

struct plan_entry {
  enum profile_collective collective;
  uint64_t bytes;
  struct schedule_cell cells[SCHEDULE_CELLS_MAX - 1];
  size_t cell_count;
  bool is_all; /* `all` */
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

/* The cells of an entry that are open, given NCCL's costs: NCCL's own choice, the named ones,
 * unless their cost is absurd, then, with `all`, every cell that is worth it (limits.h) for each
 * number of channels. Beyond SCHEDULE_CELLS_MAX the last ones are left out. */
void plan_open(const struct plan *plan, const struct plan_entry *entry, struct decide_costs costs,
               struct schedule_set *set);

#endif
