/* SPDX-License-Identifier: Apache-2.0 */
/* See link_check.h. The numbers are those of link.h. */
#include "tests/lib/link_check.h"

#include <assert.h>

#include "net_plugin/link/link_state.h"

static void check_failover(const struct failover *failover) {
  assert((failover->up & failover->connecting) == 0);
  assert((failover->up & failover->lost) == 0);
  assert((failover->connecting & failover->lost) == 0);
  assert((failover->unsettled & failover->up) == 0);
  assert(failover->config->role == LINK_SENDER ||
         (failover->unsettled | failover->connecting) == 0);
  uint64_t all = lanes_below(failover->config->policy.lanes);
  assert(((failover->up | failover->connecting | failover->lost) & ~all) == 0);
  for (uint64_t lanes = failover->up; lanes != 0; lanes &= lanes - 1) {
    const struct link_lane *checked = &failover->lanes[__builtin_ctzll(lanes)];
    assert(checked->epoch > checked->fenced_epoch);
  }
}

struct tally {
  uint64_t bytes[LINK_WINDOW];
  uint32_t chunks[LINK_WINDOW];
};

static void check_chunk(const struct link *link, struct chunk chunk, struct tally *tally) {
  if (!outgoing_is_live(&link->outgoing, chunk)) {
    assert(link->is_detached);
    return;
  }
  unsigned slot = chunk.message % LINK_WINDOW;
  const struct outgoing *message = &link->outgoing.slots[slot];
  assert(chunk.offset <= message->cut && chunk.length <= message->cut - chunk.offset);
  tally->bytes[slot] += chunk.length;
  tally->chunks[slot]++;
}

/* Is the frame, which is in the journal, the one that stands for its chunk? */
static bool is_counted(const struct link *link, unsigned lane, uint64_t count) {
  unsigned side;
  int found = repeat_of(&link->repeats, lane, count, &side);
  if (found < 0) {
    return true;
  }
  const struct repeat *repeat = &link->repeats.pairs[found];
  return !repeat->is_acked && (side == 0 || repeat->copies[0].is_gone);
}

/* Invariant 1: what was cut and not acknowledged is in one journal and as a repeat in at most one
 * other, or requeued. */
static void check_chunks(const struct link *link) {
  struct tally tally = { 0 };
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    const struct journal *journal = &link->lanes[lane].journal;
    uint64_t bytes = 0;
    assert(journal->acked <= journal->sent && journal->sent - journal->acked <= LINK_JOURNAL);
    assert(journal_is_full(journal) == ((link->full & lane_bit(lane)) != 0));
    for (uint64_t count = journal->acked; count < journal->sent; count++) {
      if (is_counted(link, lane, count)) {
        check_chunk(link, journal_at(journal, count), &tally);
      }
      bytes += journal_at(journal, count).length;
    }
    bool is_up = (link->failover.up & lane_bit(lane)) != 0;
    bool is_unsettled = (link->failover.unsettled & lane_bit(lane)) != 0;
    assert(is_up || is_unsettled == (journal_count(journal) > 0));
    assert(journal->bytes == bytes);
  }
  for (uint32_t i = 0; i < link->requeue.count; i++) {
    check_chunk(link, *requeue_at(&link->requeue, i), &tally);
  }
  const struct outgoing_ring *ring = &link->outgoing;
  for (uint64_t number = ring->retired; number < ring->posted; number++) {
    const struct outgoing *message = &ring->slots[number % LINK_WINDOW];
    assert(message->chunks == tally.chunks[number % LINK_WINDOW]);
    assert(message->cut - message->acked == tally.bytes[number % LINK_WINDOW]);
  }
}

/* Pairs of copies: each that is not gone is in its lane's journal. */
static void check_repeats(const struct link *link) {
  for (unsigned i = 0; i < link->repeats.count; i++) {
    const struct repeat *repeat = &link->repeats.pairs[i];
    assert(!repeat->copies[0].is_gone || !repeat->copies[1].is_gone);
    assert(repeat->copies[0].lane != repeat->copies[1].lane);
    for (unsigned side = 0; side < 2; side++) {
      const struct repeat_copy *copy = &repeat->copies[side];
      const struct journal *journal = &link->lanes[copy->lane].journal;
      assert(copy->is_gone || (copy->count >= journal->acked && copy->count < journal->sent));
    }
  }
}

static void check_sender(const struct link *link) {
  const struct outgoing_ring *ring = &link->outgoing;
  /* Invariant 2 */
  assert(ring->taken <= ring->completed && ring->completed <= ring->posted);
  assert(ring->retired <= ring->cutting && ring->cutting <= ring->posted);
  assert(ring->retired <= ring->completed && ring->posted - ring->retired <= LINK_WINDOW);
  assert(ring->copies_end - ring->copies_begin <= ring->copies_bytes);
  for (uint64_t number = ring->retired; number < ring->posted; number++) {
    const struct outgoing *message = &ring->slots[number % LINK_WINDOW];
    assert(number > ring->cutting ? message->cut == 0 : message->cut <= message->bytes);
    /* Invariant 3 */
    bool is_begun = number < ring->cutting || message->chunks > 0;
    assert(!is_begun || credit_allows(&link->taken, number, send_is_eager(link, message)));
  }
  assert(link->is_detached || link->taken.requested <= ring->posted);
  check_chunks(link);
  check_repeats(link);
}

static void check_receiver(const struct link *link) {
  const struct incoming_ring *ring = &link->incoming;
  if (link->is_detached) {
    return;
  }
  /* Invariant 2 */
  assert(ring->taken <= ring->completed && ring->completed <= ring->granted);
  assert(ring->granted <= ring->posted && ring->posted - ring->taken <= LINK_WINDOW);
  assert(link->given.advertised <= ring->granted);
  /* Invariant 4: what is arriving is arriving on some lane. */
  uint64_t arriving[LINK_WINDOW] = { 0 };
  uint64_t bounced[LINK_WINDOW / 2] = { 0 };
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    const struct link_lane *receiving = &link->lanes[lane];
    if (receiving->shares != 0) {
      assert(link->lanes[receiving->shares - 1].shares == lane + 1);
      assert(link->lanes[receiving->shares - 1].arrival != ARRIVAL_AGAIN);
    }
    if (receiving->shares != 0 && receiving->shares - 1 < lane) {
      continue; /* counted with the other copy */
    }
    if (arrival_is_for_user(receiving->arrival)) {
      arriving[receiving->header.message % LINK_WINDOW] += receiving->header.length;
    }
    if (receiving->arrival == ARRIVAL_BOUNCED) {
      bounced[receiving->header.message % ring->eager_slots] += receiving->header.length;
    }
    assert(receiving->arrival == ARRIVAL_NONE || (link->failover.up & lane_bit(lane)) != 0);
  }
  for (uint64_t number = ring->completed; number < ring->posted; number++) {
    const struct incoming *message = &ring->slots[number % LINK_WINDOW];
    assert(message->arriving == arriving[number % LINK_WINDOW]);
    assert(!message->is_known || message->landed + message->arriving <= message->bytes);
    assert(!message->is_known || message->bytes <= message->capacity);
  }
  for (unsigned slot = 0; slot < ring->eager_slots; slot++) {
    const struct bounce *bounce = &ring->bounces[slot];
    assert((bounce->state == BOUNCE_ARRIVING ? bounce->arriving : 0) == bounced[slot]);
    assert(bounce->state == BOUNCE_FREE || bounce->landed + bounce->arriving <= bounce->bytes);
    assert(bounce->state != BOUNCE_LANDED || bounce->message >= ring->posted);
    assert(bounce->state == BOUNCE_FREE || bounce->message >= ring->granted);
  }
}

/* Nothing was noted later than the latest time that the link knows. */
static void check_time(const struct link *link) {
  const struct liveness *liveness = &link->liveness;
  assert(liveness->spoke_ns <= link->now_ns && liveness->heard_ns <= link->now_ns);
  assert(liveness->waiting_ns <= link->now_ns && liveness->revived_ns <= link->now_ns);
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    assert(link->lanes[lane].spoke_ns <= link->now_ns);
    assert(link->lanes[lane].moved_ns <= link->now_ns);
  }
}

void link_check(const struct link *link) {
  check_failover(&link->failover);
  assert((link->writing_data & ~link->writing) == 0);
  assert((link->copied & ~link->writing_data) == 0);
  assert((link->writing & ~link->failover.up) == 0); /* Invariant 5 */
  assert(((link->pong | link->ping | link->rdma | link->still | link->partial) &
          ~link->failover.up) == 0);
  assert(link->farewell != FAREWELL_WRITING ||
         (link->writing & lane_bit(link->farewell_lane)) != 0);
  assert(link->peer_error == 0 || link->status != 0);
  check_time(link); /* Invariant 14 */
  if (link->status != 0) {
    return; /* messages stay where they were when it failed */
  }
  if (link->config.role == LINK_SENDER) {
    check_sender(link);
  } else {
    check_receiver(link);
  }
}
