/* SPDX-License-Identifier: Apache-2.0 */
/* plan_item: one thing that a training step does: compute, start a communication, wait for one.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef COLL_REPLAY_PLAN_ITEM_H
#define COLL_REPLAY_PLAN_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "tuner_plugin/tools/coll/operation.h"

enum { PLAN_WORLD = 0 }; /* the group of all ranks */

enum plan_kind { PLAN_COMPUTE, PLAN_COLLECTIVE, PLAN_SEND, PLAN_RECV, PLAN_WAIT };

/* Elements that each rank of an alltoall sends to the parts of its group, or receives from them.
 * Runs of equal length belong to one rank: 8 counts are those of 8 ranks, or of 4 with two each. */
struct plan_split {
  bool is_received;
  unsigned count;
  uint64_t counts[];
};

/* Of a send or a receive, `root` is the peer, a rank of the group. */
struct plan_collective {
  enum operation operation;
  enum element_type type;
  enum pattern_redop redop; /* PATTERN_NONE where the operation has none */
  int root;                 /* a rank of the group; -1 where the operation has none */
  int group;                /* PLAN_WORLD, or 1 + place in the workload's groups */
  uint64_t elements;        /* the count argument of the NCCL call; with a split, of all of them */
  const struct plan_split *split; /* of an uneven alltoall; NULL: the same for all */
  double split_scale;             /* its counts are multiplied by it, see plan_part */
};

/* Whose item it is: that of the ranks with this place in their group. */
struct plan_only {
  int group;
  int place; /* 1 + the rank there; 0: of all ranks, and `group` means nothing */
};

struct plan_item {
  enum plan_kind kind;
  /* Of communication: 1, 2, 3, ... in order, and sends and receives that follow each other with the
   * same number are one call of NCCL. PLAN_WAIT: which of them. */
  uint32_t number;
  uint32_t event; /* its place in the list of the file */
  bool is_waited; /* some PLAN_WAIT of the file is for it, at all ranks that start it */
  double us;      /* PLAN_COMPUTE: microseconds */
  struct plan_only only;
  struct plan_collective collective;
};

/* Such items have a number of their own, and move data. */
static inline bool plan_is_communication(const struct plan_item *item) {
  return item->kind != PLAN_COMPUTE && item->kind != PLAN_WAIT;
}

#endif
