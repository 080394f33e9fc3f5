/* SPDX-License-Identifier: Apache-2.0 */
/* decide: profile + collective call -> algorithm, protocol and channels, or nothing.
 * Owns: nothing; the table lies in memory of the caller's.  Threads: any, the table is constant.
 * Blocks: never; no lock, allocation, clock or log.  Fails: cannot; in doubt nothing is changed.
 *
 * All ranks of a communicator must choose the same, or the job hangs, and NCCL never compares their
 * choices. So a choice depends on its arguments alone: the table (made from the profile and the
 * shape of the communicator), the collective, its bytes, and NCCL's own cost table, whose inputs
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

/* The choice for one range of sizes of one collective. */
struct decide_row {
  uint64_t bytes_lo; /* first size in the range */
  uint64_t bytes_hi; /* first size after it */
  struct decide_choice choice;
};

/* The rows for communicators of one shape, made by compile.h: by collective, ascending, without
 * overlap. Collective c has the rows [first[c], first[c + 1]). */
struct decide_table {
  const struct decide_row *rows;
  uint32_t first[PROFILE_COLLECTIVE_COUNT + 1];
};

/* The row that covers the call, or NULL. Any value of `coll` is allowed. */
const struct decide_row *decide_find(const struct decide_table *table, int coll, uint64_t bytes);

/* If the guard accepts the choice, makes its cell the cheapest and bounds *channels; returns true.
 * Else changes nothing. */
bool decide_put(const struct decide_choice *choice, struct decide_costs costs, int *channels);

/* For interfaces with a cost table (v3 to v7): the same with the row that covers the call, if there
 * is one. */
bool decide_by_costs(const struct decide_table *table, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels);

/* For the interface that takes the numbers themselves and shows no costs (v2). */
bool decide_by_number(const struct decide_table *table, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels);

#endif
