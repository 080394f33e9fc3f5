/* SPDX-License-Identifier: Apache-2.0 */
/* transfers: where each lies in its buffer, and what it is checked by. */
#include "tests/coll/replay/transfers.h"

/* Messages do not overlap in the pattern: one has at most 2^36 x 1000 elements
 * (WORKLOAD_ELEMENTS_MAX, PLAN_SCALE_MAX), which is less than 2^48. */
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

size_t transfers_of_alltoall(const struct plan_collective *c, const struct plan_group *group,
                             struct operation_transfer *transfers) {
  struct offsets offsets = { 0 };
  size_t count = 0;
  uint64_t own = plan_part(c, group->rank, group->ranks);
  for (int peer = 0; peer < group->ranks; peer++) {
    uint64_t part = plan_part(c, peer, group->ranks);
    uint64_t sent = c->split->is_received ? own : part;
    uint64_t received = c->split->is_received ? part : own;
    if (sent)
      transfers[count++] = take(&offsets, true, peer, sent, (uint64_t)peer);
    if (received)
      transfers[count++] = take(&offsets, false, peer, received, (uint64_t)group->rank);
  }
  return count;
}

size_t transfers_of_exchange(const struct plan_item *items, size_t count,
                             const struct transfers_so_far *so_far,
                             struct operation_transfer *transfers) {
  struct offsets offsets = { 0 };
  for (size_t i = 0; i < count; i++) {
    bool is_send = items[i].kind == PLAN_SEND;
    const struct plan_collective *c = &items[i].collective;
    uint32_t *messages = is_send ? so_far->sent : so_far->received;
    transfers[i] = take(&offsets, is_send, c->root, c->elements, messages[c->root]++);
  }
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
