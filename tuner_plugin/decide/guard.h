/* SPDX-License-Identifier: Apache-2.0 */
/* guard: what a profile may never override. Owns: nothing.  Threads: any.  Blocks: never. Fails:
 * cannot; in doubt the answer is no. */
#ifndef TUNER_PLUGIN_DECIDE_GUARD_H
#define TUNER_PLUGIN_DECIDE_GUARD_H

#include <stdbool.h>

#include "tuner_plugin/decide/decide.h"

enum guard_verdict {
  GUARD_REFUSED,    /* leave the call to NCCL */
  GUARD_IS_DEFAULT, /* NCCL chooses this cell by itself: no cost needs to change */
  GUARD_OVERRIDE,   /* safe to make the cheapest */
};

/* May the cell (algo, proto) be chosen, given NCCL's costs? A gain measured against one choice of
 * NCCL's is meaningless against another, so it may only while NCCL would choose the cell `over`
 * (costs_cell, or DECIDE_ANY_CELL). */
enum guard_verdict guard_check(struct decide_costs costs, unsigned algo, unsigned proto,
                               unsigned over);

/* Does a measured row gain enough? At least that, and twice the noise of the two times. */
bool guard_is_worth(uint64_t default_ns, uint64_t choice_ns, uint32_t noise_permille);

/* Takes measured rows out that do not. */
void guard_drop_rows(struct profile *profile);

/* guard_check without costs: only cells that every multi-node communicator of NCCL 2.21 has. */
bool guard_allows_blind(int coll, unsigned algo, unsigned proto);

/* Channels to write over `given`, what NCCL passed in (0: nothing known); 0 keeps it. */
int guard_bound_channels(unsigned algo, unsigned wanted, int given);

#endif
