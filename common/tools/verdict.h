/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: whether every rank of a job uses stratus, from what its processes say. It reads no
 * clock.
 *
 * A host that lacks the plugin says nothing itself, nor does a rank that never gets to NCCL. The
 * others know: launchers tell a process how many there are, NCCL tells a communicator's tuner how
 * many ranks it has, and a connect to a peer without stratus gets a handle that is none of ours,
 * with the peer's address. Hosts are not counted: where NCCL can use neither peer access nor shared
 * memory it takes each GPU for a node.
 *
 *   FAILS   a process says that a peer, or its own host, does not use stratus;
 *           or makes a communicator, and NCCL has not loaded the net plugin before
 *   DOUBT   a communicator has more ranks than have spoken, in each communicator of that size;
 *           or a process of the launcher has not spoken, and it is in NCCL's job as far as is
 * known; or the job has failed before NCCL made a communicator. Only a lost message, a missing
 * plugin or a rank that did not get so far can be the reason. Not sure enough to end a job, but an
 * error at its end
 *
 * Owns: what was said, until verdict_free.  Threads: one.  Blocks: never.
 * Fails: out of memory: what does not fit is not counted. */
#ifndef COMMON_TOOLS_VERDICT_H
#define COMMON_TOOLS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/check_event.h"

enum verdict_state {
  VERDICT_NOTHING, /* no process has said anything */
  VERDICT_GOOD,
  VERDICT_DOUBT,
  VERDICT_FAILED,
};

struct verdict;

/* `is_alone`: of one process of a launcher, whose others say nothing to this one. */
struct verdict *verdict_new(bool is_alone);
void verdict_free(struct verdict *verdict);

void verdict_take(struct verdict *verdict, const struct check_event *event, uint64_t now_ns);

enum verdict_moment {
  VERDICT_RUNNING,
  VERDICT_ENDED,      /* no more messages come */
  VERDICT_HAS_FAILED, /* the same, and the job was no success */
};

/* What is known now. */
enum verdict_state verdict_judge(const struct verdict *verdict, uint64_t now_ns,
                                 enum verdict_moment moment);

/* What is known, in lines; more of it if the verdict is not good. `name` finds the name of an
 * address; NULL: it has none. */
typedef const char *verdict_name_fn(const char *address);
void verdict_print(const struct verdict *verdict, bool is_good, verdict_name_fn *name, FILE *out);

#endif
