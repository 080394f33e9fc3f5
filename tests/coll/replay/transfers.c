/* SPDX-License-Identifier: Apache-2.0 */
/* transfers: where each lies in its buffer, and what it is checked by. */
#include "tests/coll/replay/transfers.h"

/* Messages do not overlap in the pattern: one has at most 10^11 x 1000 elements,
 * which is less than 2^48. */
enum { PLACE_BITS = 48 };

/* Of one rank so far, in elements. */
struct offsets {
  size_t sent, received;
};

static struct operation_transfer take(struct offsets *offsets, bool is_send, int peer,
                                      uint64_t count, uint64_t message) {
  size_t *used = is_send ? &offsets->sent : &offsets->received;
  struct operation_transfer transfer = { .is_send = is_send,
                                         .peer = peer,
                                         .count = (size_t)count,
                                         .first = *used,
                                         .place = message << PLACE_BITS };
  *used += transfer.count;
  return transfer;
}

static size_t of_alltoall(const struct workload_item *item, const struct workload_place *place,
                          struct operation_transfer *transfers) {
  struct offsets offsets = { 0 };
  size_t count = 0;
  uint64_t own = workload_part(item, place->rank, place->ranks);
  for (int peer = 0; peer < place->ranks; peer++) {
    uint64_t part = workload_part(item, peer, place->ranks);
    uint64_t sent = item->is_received ? own : part;
    uint64_t received = item->is_received ? part : own;
    if (sent)
      transfers[count++] = take(&offsets, true, peer, sent, (uint64_t)peer);
    if (received)
      transfers[count++] = take(&offsets, false, peer, received, (uint64_t)place->rank);
  }
  return count;
}

size_t transfers_of(const struct workload_item *item, const struct workload_place *place,
                    const struct transfers_so_far *so_far, struct operation_transfer *transfers) {
  struct offsets offsets = { 0 };
  size_t count = 0;
  if (item->kind == WORKLOAD_COLLECTIVE)
    return item->count ? of_alltoall(item, place, transfers) : 0;
  if (item->sent)
    transfers[count++] = take(&offsets, true, item->peer, item->sent, so_far->sent[item->peer]++);
  if (item->received)
    transfers[count++] =
        take(&offsets, false, item->peer, item->received, so_far->received[item->peer]++);
  return count;
}

struct operation_counts transfers_counts(const struct operation_transfer *transfers, size_t count,
                                         unsigned type_size) {
  struct operation_counts counts = { 0 };
  for (size_t i = 0; i < count; i++)
    *(transfers[i].is_send ? &counts.send : &counts.recv) += transfers[i].count;
  counts.call = counts.send;
  counts.bytes = (counts.send > counts.recv ? counts.send : counts.recv) * type_size;
  return counts;
}
