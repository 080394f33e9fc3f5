/* SPDX-License-Identifier: Apache-2.0 */
/* deadlock: goes through a plan on paper, all ranks at once, before any of them runs.
 * Owns: nothing between calls.  Threads: any.
 * Blocks: never.  Fails: -EINVAL with a message: ranks that would wait for each other forever,
 * sends and receives without a counterpart or of another size, waits for what a rank does not
 * start; -ENOMEM.
 *
 * Here every communication holds its rank until it is done, a collective until all ranks of its
 * group are in it, and an exchange until each of its sends has met a receive, and each receive a
 * send. A job may need less: NCCL starts work and goes on. But it promises nothing where ranks use
 * several communicators in different orders, and the first send to a peer does hold its rank until
 * the peer connects. What passes here needs no such luck. */
#ifndef COLL_REPLAY_DEADLOCK_H
#define COLL_REPLAY_DEADLOCK_H

#include "tests/coll/replay/plan.h"

/* `error` has room for WORKLOAD_ERROR_MAX. */
int deadlock_check(const struct workload *workload, const struct plan_item *items, size_t count,
                   int ranks, char *error);

#endif
