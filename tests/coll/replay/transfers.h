/* SPDX-License-Identifier: Apache-2.0 */
/* transfers: the sends and receives of one rank in an uneven alltoall, or in an exchange.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot.
 *
 * Buffers have one after the other, those that are sent in one, those that are received in the
 * other. What a pair of ranks sends begins at a place of the check's pattern that both know: of an
 * alltoall it is the receiver's, of an exchange it tells how many messages the pair had before. */
#ifndef COLL_REPLAY_TRANSFERS_H
#define COLL_REPLAY_TRANSFERS_H

#include "tests/coll/replay/workload.h"

/* Messages that a rank has sent to each rank of its group, and received from it; and what it did
 * with all of them. */
struct transfers_so_far {
  uint32_t *sent, *received;
  uint32_t collectives;
};

/* Writes at most two for each rank of the group; returns how many, 0 for what is neither. */
size_t transfers_of(const struct workload_item *item, const struct workload_place *place,
                    const struct transfers_so_far *so_far, struct operation_transfer *transfers);

/* Elements of all of them. */
struct operation_counts transfers_counts(const struct operation_transfer *transfers, size_t count,
                                         unsigned type_size);

#endif
