/* SPDX-License-Identifier: Apache-2.0 */
/* link_check: asserts what must hold between any two calls. The numbers are those of link.h. */
#include <assert.h>

#include "net_plugin/link/link_state.h"

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

static bool is_read(const struct link *link, uint64_t number) {
  bool is_read = false;
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    bool is_reading = (link_reading(link) & lane_bit(lane)) != 0;
    is_read |= is_reading && link->lanes[lane].number == number;
  }
  return is_read;
}

/* Invariant 1: what was cut and not acknowledged is unsent, or carried, or held. */
static void check_chunks(const struct link *link) {
  const struct flight *flight = &link->flight;
  struct tally tally = { 0 };
  unsigned unsent = 0, in_flight[WIRE_MAX_LANES] = { 0 };
  uint64_t bytes[WIRE_MAX_LANES] = { 0 };
  assert(flight->first <= flight->next && flight->next - flight->first <= LINK_FLIGHT);
  for (uint64_t number = flight->first; number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    assert(chunk->state != FLIGHT_DONE || number > flight->first);
    assert((chunk->state == FLIGHT_SENT) == (chunk->lanes[0] != FLIGHT_NO_LANE));
    assert(chunk->lanes[1] == FLIGHT_NO_LANE || chunk->lanes[0] != chunk->lanes[1]);
    assert(chunk->state != FLIGHT_HELD || is_read(link, number));
    unsent += chunk->state == FLIGHT_UNSENT ? 1 : 0;
    for (unsigned i = 0; i < FLIGHT_COPIES && chunk->lanes[i] != FLIGHT_NO_LANE; i++) {
      in_flight[chunk->lanes[i]]++;
      bytes[chunk->lanes[i]] += chunk->chunk.length;
    }
    if (chunk->state != FLIGHT_DONE) {
      check_chunk(link, chunk->chunk, &tally);
    }
  }
  assert(flight->unsent == unsent);
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    bool is_up = (link->failover.up & lane_bit(lane)) != 0;
    bool is_unsettled = (link->failover.unsettled & lane_bit(lane)) != 0;
    if (link->lanes[lane].is_overtaken) {
      assert((link->writing_data & lane_bit(lane)) != 0);
      in_flight[lane]++;
      bytes[lane] += link->lanes[lane].overtaken_bytes;
    }
    assert(link->lanes[lane].in_flight == in_flight[lane]);
    assert(link->lanes[lane].in_flight_bytes == bytes[lane]);
    assert(is_up || is_unsettled == (in_flight[lane] > 0));
  }
  const struct outgoing_ring *ring = &link->outgoing;
  for (uint64_t number = ring->retired; number < ring->posted; number++) {
    const struct outgoing *message = &ring->slots[number % LINK_WINDOW];
    assert(message->chunks == tally.chunks[number % LINK_WINDOW]);
    assert(message->cut - message->acked == tally.bytes[number % LINK_WINDOW]);
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
    assert(message->is_cut == (number < ring->cutting));
    assert(number > ring->cutting ? message->cut == 0 : message->cut <= message->bytes);
    /* Invariant 3 */
    assert(number > ring->cutting || (message->chunks == 0 && !message->is_cut) ||
           credit_allows(&link->taken, number, send_is_eager(link, message)));
  }
  assert(link->is_detached || link->taken.requested <= ring->posted);
  check_chunks(link);
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
  /* Invariant 4 */
  const struct link_landed *landed = &link->landed;
  assert(landed->first <= landed->end && landed->end - landed->first <= LINK_FLIGHT);
  assert((landed->bits[landed->first % LINK_FLIGHT / 64] >> landed->first % 64 & 1) == 0);
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    const struct link_lane *receiving = &link->lanes[lane];
    bool is_arriving = arrival_is_for_message(receiving->arrival);
    assert(is_arriving == ((link->arriving & lane_bit(lane)) != 0));
    assert(!is_arriving || receiving->header.message >= ring->completed);
    assert(!is_arriving || receiving->header.number >= landed->first);
    assert(receiving->arrival == ARRIVAL_NONE || (link->failover.up & lane_bit(lane)) != 0);
  }
  for (uint64_t number = ring->completed; number < ring->posted; number++) {
    const struct incoming *message = &ring->slots[number % LINK_WINDOW];
    assert(!message->is_known || message->landed <= message->bytes);
    assert(!message->is_known || message->bytes <= message->capacity);
  }
  for (unsigned slot = 0; slot < ring->eager_slots; slot++) {
    const struct bounce *bounce = &ring->bounces[slot];
    assert(bounce->state == BOUNCE_FREE || bounce->landed <= bounce->bytes);
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
  failover_check(&link->failover);
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
