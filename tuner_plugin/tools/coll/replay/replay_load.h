/* SPDX-License-Identifier: Apache-2.0 */
/* replay_load: the workloads that --replay names, and the plan of each for so many ranks.
 * Owns: workloads and plans, until replay_unload.  Threads: one.
 * Blocks: while files are read.  Fails: with a message; nothing is loaded then. */
#ifndef COLL_REPLAY_REPLAY_LOAD_H
#define COLL_REPLAY_REPLAY_LOAD_H

#include <stdio.h>

#include "tuner_plugin/tools/coll/options.h"
#include "tuner_plugin/tools/coll/replay/plan.h"

struct replay_part {
  struct workload workload;
  struct plan_item *items;
  size_t count;
  struct plan_sum sum; /* of rank 0 */
};

struct replay {
  int ranks;
  struct replay_part *parts; /* in the order of the list */
  size_t part_count;
};

/* With 0 ranks the files are only checked, no plan is made. 0 or a negative errno; `error` has room
 * for WORKLOAD_ERROR_MAX. */
int replay_load(struct replay *replay, const struct options *options, int ranks, char *error);
void replay_unload(struct replay *replay);

/* The plans as text, see docs/workloads.md. */
void replay_print(const struct replay *replay, FILE *to);

#endif
