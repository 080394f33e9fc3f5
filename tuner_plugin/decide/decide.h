/* SPDX-License-Identifier: Apache-2.0 */
/* decide: profile + collective call -> algorithm, protocol and channels, or nothing.
 * Owns: nothing; the tables are the profile's.  Threads: any, the profile is constant.
 * Blocks: never; no lock, allocation, clock or log.  Fails: cannot; in doubt nothing is changed.
 *
 * All ranks of a communicator must choose the same, or the job hangs, and NCCL never compares their
 * choices. So a choice depends on its arguments alone: the tables (of the profile, for the shape of
 * the communicator), the collective, its bytes, and NCCL's own cost table, whose inputs
 * NCCL has aligned over the ranks (NVIDIA/nccl v2.30.7-1 src/init.cc:1437-1446). */
#ifndef TUNER_PLUGIN_DECIDE_DECIDE_H
#define TUNER_PLUGIN_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/profile.h"
#include "tuner_plugin/decide/costs.h"

/* What to do with a call. */
struct decide_choice {
  uint8_t algo;     /* enum profile_algorithm, which is NCCL's number */
  uint8_t proto;    /* enum profile_protocol, the same */
  uint8_t channels; /* most channels to use; 0 leaves them to NCCL */
  uint8_t over;     /* costs_cell of what NCCL must have chosen, or DECIDE_ANY_CELL */
};

enum { DECIDE_ANY_CELL = UINT8_MAX };

/* What a profile has for communicators of one shape. */
struct decide_tables {
  const struct profile_table *of[PROFILE_COLLECTIVE_COUNT]; /* NULL: none */
  size_t row_count;                                         /* of all of them */
};

/* For `ranks` ranks spread evenly over `nodes` nodes. None for one node, as profiles are measured
 * over the network, and if the nodes have different numbers of ranks, as that was never measured.
 * Measured rows that gain too little must be out of the profile (guard_drop_rows). */
struct decide_tables decide_tables_of(const struct profile *profile, size_t ranks, size_t nodes);

/* The row that covers the call, or NULL. Any value of `coll` is allowed. */
const struct profile_row *decide_find(const struct decide_tables *tables, int coll, uint64_t bytes);

/* If the guard accepts the choice, makes its cell the cheapest and bounds *channels; returns true.
 * Else changes nothing. */
bool decide_put(const struct decide_choice *choice, struct decide_costs costs, int *channels);

/* For interfaces with a cost table (v3 to v7): the same with the row that covers the call, if there
 * is one. */
bool decide_by_costs(const struct decide_tables *tables, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels);

/* For the interface that takes the numbers themselves and shows no costs (v2). */
bool decide_by_number(const struct decide_tables *tables, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels);

#endif
