/* SPDX-License-Identifier: Apache-2.0 */
/* plan_item: one thing that a training step does: compute, start a collective, wait for one.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef COLL_REPLAY_PLAN_ITEM_H
#define COLL_REPLAY_PLAN_ITEM_H

#include <stdint.h>

#include "tuner_plugin/tools/coll/operation.h"

enum { PLAN_WORLD = 0 }; /* the group of all ranks */

enum plan_kind { PLAN_COMPUTE, PLAN_COLLECTIVE, PLAN_WAIT };

struct plan_collective {
  enum operation operation;
  enum element_type type;
  enum pattern_redop redop; /* PATTERN_NONE where the operation has none */
  int root;                 /* a rank of the group; -1 where the operation has none */
  int group;                /* PLAN_WORLD, or 1 + place in the workload's groups */
  uint64_t elements;        /* the count argument of the NCCL call */
};

struct plan_item {
  enum plan_kind kind;
  uint32_t number; /* PLAN_COLLECTIVE: 1, 2, 3, ... in order; PLAN_WAIT: which of them */
  double us;       /* PLAN_COMPUTE: microseconds */
  struct plan_collective collective;
};

#endif
