/* SPDX-License-Identifier: Apache-2.0 */
/* step_parts: what a step is made of; for step*.c only.
 * Owns: nothing.  Threads: the main thread, and CUDA's for `deadline_ns`.
 * Blocks: never.  Fails: cannot. */
#ifndef COLL_REPLAY_STEP_PARTS_H
#define COLL_REPLAY_STEP_PARTS_H

#include "tuner_plugin/tools/coll/replay/step.h"
#include "tuner_plugin/tools/coll/replay/transfers.h"

/* One group's communicator, and the stream of what is exchanged in it. */
struct channel {
  struct plan_group group;
  ncclComm_t comm;
  cudaStream_t stream;
  cudaEvent_t end;
  struct transfers_so_far so_far; /* of the launches that have been opened */
};

/* What this rank does for an item of the plan, or for those of an exchange. */
struct launch {
  const struct plan_item *item; /* the first */
  /* PLAN_COMPUTE */
  uint64_t ns;
  bool begins_anew;      /* when it is called: the first one, and after a wait */
  uint64_t *deadline_ns; /* the step's: when the compute before it ended */
  /* Communication */
  struct operation_call call;
  struct operation_transfer *transfers; /* NULL: a collective, the same at all ranks */
  size_t transfer_count;
  uint32_t order; /* of a collective in its communicator: 1, 2, 3, ... */
  cudaEvent_t ready, done;
};

struct step {
  struct job *job;
  const struct replay_part *part;
  cudaStream_t compute;
  cudaEvent_t end;
  uint64_t deadline_ns;
  struct channel *channels; /* of the world, and of each group */
  size_t channel_count;
  struct launch *launches;
  size_t launch_count;
  struct launch **by_number; /* communication by number - 1; NULL: other ranks' */
};

/* c10d's all_reduce, broadcast and reduce work on one tensor, its other calls have two. */
bool step_is_in_place(enum operation operation);

/* A launch of communication as a case that can be checked. */
struct measure_case step_case(const struct step *step, const struct launch *launch);

#endif
