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

/* Makes the cell the cheapest and bounds *channels; returns true. Changes nothing where the cell is
 * ruled out, costs absurdly more, or NCCL would choose another than `over` (costs_cell, or
 * DECIDE_ANY_CELL): a gain measured against one choice of NCCL's is meaningless against another. */
bool decide_put(const struct profile_cell *cell, unsigned over, struct decide_costs costs,
                int *channels);

/* For interfaces with a cost table (v3 to v7): the same with the row that covers the call, if there
 * is one. */
bool decide_by_costs(const struct decide_tables *tables, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels);

/* For the interface that takes the numbers themselves and shows no costs (v2). */
bool decide_by_number(const struct decide_tables *tables, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels);

/* ---- guard: what a profile may never override; in doubt the answer is no ---- */

/* Does a measured row gain enough? At least that, and twice the noise of the two times. */
bool guard_is_worth(uint64_t default_ns, uint64_t choice_ns, uint32_t noise_permille);

/* Takes measured rows out that do not. */
void guard_drop_rows(struct profile *profile);

/* Channels to write over `given`, what NCCL passed in (0: nothing known); 0 keeps it. */
int guard_bound_channels(unsigned algo, unsigned wanted, int given);

/* ---- collnet_range: the sizes of AllReduce at which CollNet is left to NCCL where no row was
 * measured ----
 *
 * NCCL's model gives CollNet the bandwidth within a host, whatever the network, so that it would
 * choose CollNet for every size. stratus' CollNet (STRATUS_COLLNET) has these limits:
 *   - A call carries no less than 32 KiB, whatever the size: smaller ones are faster by LL.
 *   - A NIC sends 2 (N - 1) / N of the message for N hosts. With one GPU per host that is what a
 * ring sends, with two hosts what a tree sends: only 16-bit exchange sends less. */

struct collnet_range {
  uint64_t least, most; /* bytes of an AllReduce; most 0: NCCL's choice stands everywhere */
};

/* is_halved: sums of f32 travel in 16 bits. */
struct collnet_range collnet_range_of(size_t ranks, size_t nodes, bool is_halved);
/* Outside of the range: rules CollNet's cells out, if there are others. */
void collnet_range_apply(const struct collnet_range *range, int coll, uint64_t bytes,
                         struct decide_costs costs);

#endif
