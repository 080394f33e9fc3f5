/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: whether every host of a job uses stratus, from what its processes say. It reads no
 * clock.
 *
 * A host that lacks the plugin says nothing itself. The others know: NCCL tells a communicator's
 * tuner how many hosts it has, and a connect to a peer without stratus gets a handle that is none
 * of ours, with the peer's address.
 *
 *   FAILS   a process says that a peer, or its own host, does not use stratus;
 *           or makes a communicator, and NCCL has not loaded the net plugin before
 *   DOUBT   a communicator has more hosts than have said that they use stratus. NCCL loads the net
 *           plugin before the tuner, so only a lost message or a missing plugin can be the reason.
 *           Not sure enough to end a job, but an error at its end
 *
 * Owns: what was said, until verdict_free.  Threads: one.  Blocks: never.
 * Fails: out of memory: what does not fit is not counted. */
#ifndef COMMON_TOOLS_VERDICT_H
#define COMMON_TOOLS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/check_event.h"

/* Messages about one fact come from many hosts: so long is waited for the others. NCCL's connects
 * of one collective are milliseconds apart. */
#define VERDICT_SETTLE_NS (1000000000ull)
/* A communicator without a net plugin: its process's earlier message may be on its way. */
#define VERDICT_GRACE_NS (2000000000ull)

enum verdict_state {
  VERDICT_NOTHING, /* no process has said anything */
  VERDICT_GOOD,
  VERDICT_DOUBT,
  VERDICT_FAILED,
};

struct verdict;

struct verdict *verdict_new(void);
void verdict_free(struct verdict *verdict);

void verdict_take(struct verdict *verdict, const struct check_event *event, uint64_t now_ns);

/* What is known now. At the job's end no more messages come: `is_end`. */
enum verdict_state verdict_judge(const struct verdict *verdict, uint64_t now_ns, bool is_end);

/* The addresses of peers without stratus, one after the other; NULL behind the last. */
const char *verdict_peer(const struct verdict *verdict, unsigned which);

/* What is known, in lines. `name` finds the name of an address; NULL: it has none. */
typedef const char *verdict_name_fn(const char *address);
void verdict_print(const struct verdict *verdict, verdict_name_fn *name, FILE *out);

#endif
