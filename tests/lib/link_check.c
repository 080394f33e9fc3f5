/* SPDX-License-Identifier: Apache-2.0 */
/* See link_check.h. The numbers are those of link.h. */
#include "tests/lib/link_check.h"

#include <assert.h>

#include "net_plugin/link/link_state.h"

static void check_lanes(const struct link *link) {
  assert((link->up & link->connecting) == 0);
  assert((link->up & link->lost) == 0);
  assert((link->connecting & link->lost) == 0);
  assert(link->config.role == LINK_SENDER || link->connecting == 0);
  uint64_t all = lanes_below(link->config.policy.lanes);
  assert(((link->up | link->connecting | link->lost) & ~all) == 0);
  for (uint64_t lanes = link->up; lanes != 0; lanes &= lanes - 1) {
    const struct link_lane *checked = &link->lanes[__builtin_ctzll(lanes)];
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

/* What the lanes carry, as the flight and they themselves have it. */
struct carried {
  unsigned chunks[WIRE_MAX_LANES];
  uint64_t bytes[WIRE_MAX_LANES];
};

static void carried_add(struct carried *carried, unsigned lane, struct chunk chunk) {
  carried->chunks[lane]++;
  carried->bytes[lane] += chunk.length;
}

static void check_flight(const struct link *link, struct tally *tally, struct carried *carried) {
  const struct flight *flight = &link->flight;
  unsigned unsent = 0;
  assert(flight->first <= flight->next && flight->next - flight->first <= LINK_FLIGHT);
  for (uint64_t number = flight->first; number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    assert(chunk->state != FLIGHT_DONE || number > flight->first);
    assert((chunk->state == FLIGHT_SENT) == (chunk->lanes[0] != FLIGHT_NO_LANE));
    assert(chunk->lanes[1] == FLIGHT_NO_LANE || chunk->lanes[0] != chunk->lanes[1]);
    unsent += chunk->state == FLIGHT_UNSENT ? 1 : 0;
    for (unsigned i = 0; i < FLIGHT_COPIES && chunk->lanes[i] != FLIGHT_NO_LANE; i++) {
      carried_add(carried, chunk->lanes[i], chunk->chunk);
    }
    if (chunk->state != FLIGHT_DONE) {
      check_chunk(link, chunk->chunk, tally);
    }
  }
  assert(flight->unsent == unsent);
}

/* Another lane before this one writes the same chunk from its message. */
static bool is_read_before(const struct link *link, unsigned lane) {
  for (unsigned before = 0; before < lane; before++) {
    const struct link_lane *reader = &link->lanes[before];
    if (link_lane_reads(reader) && reader->number == link->lanes[lane].number) {
      return true;
    }
  }
  return false;
}

/* Invariant 1: what was cut and not acknowledged is unsent, or carried; what is acknowledged counts
 * for its message when no lane reads it any more. */
static void check_chunks(const struct link *link) {
  struct tally tally = { 0 };
  struct carried carried = { 0 };
  check_flight(link, &tally, &carried);
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    const struct link_lane *carrier = &link->lanes[lane];
    if (carrier->is_overtaken) {
      assert(carrier->is_writing_data);
      carried_add(&carried, lane, carrier->chunk);
    }
    assert(!carrier->is_writing_data || (link->writing & lane_bit(lane)) != 0);
    assert(!carrier->is_copied || carrier->is_writing_data);
    if (carrier->is_overtaken && link_lane_reads(carrier) && !is_read_before(link, lane)) {
      check_chunk(link, carrier->chunk, &tally);
    }
    assert(carrier->in_flight == carried.chunks[lane]);
    assert(carrier->policy.in_flight_bytes == carried.bytes[lane]);
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
    assert(number > ring->cutting ? message->cut == 0 : message->cut <= message->bytes);
    /* Invariant 3 */
    bool is_begun = number < ring->cutting || message->chunks > 0;
    assert(!is_begun || send_has_credit(link, number, send_is_eager(link, message)));
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
    assert(receiving->arrival == ARRIVAL_NONE || (link->up & lane_bit(lane)) != 0);
  }
  uint64_t early = ring->granted + ring->eager_slots;
  uint64_t end = ring->posted > early ? ring->posted : early;
  for (uint64_t number = ring->completed; number < end; number++) {
    const struct incoming *message = &ring->slots[incoming_slot(number)];
    assert((message->is_known || message->bytes == 0) && message->landed <= message->bytes);
    assert(number >= ring->posted || message->bytes <= message->capacity);
    assert(number < ring->posted || message->is_bounced == message->is_known);
    assert(!message->is_bounced || number >= ring->granted);
    assert(!message->is_landed || message->landed == message->bytes);
    assert(!message->is_landed || number > ring->completed || ring->completed == ring->posted);
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
  check_lanes(link);
  assert((link->writing & ~link->up) == 0); /* Invariant 5 */
  assert(((link->pong | link->ping | link->rdma | link->still | link->partial) & ~link->up) == 0);
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

/* Invariants 1 and 4: a chunk leaves the sender by an acknowledgement, and that says that it has
 * landed. */
void link_check_both(const struct link *sender, const struct link *receiver) {
  const struct flight *flight = &sender->flight;
  const struct link_landed *landed = &receiver->landed;
  if (sender->is_detached || receiver->is_detached || sender->status != 0 ||
      receiver->status != 0) {
    return;
  }
  assert(landed->end <= flight->next);
  for (uint64_t number = landed->first; number < flight->next; number++) {
    bool is_done = number < flight->first || flight_at(flight, number)->state == FLIGHT_DONE;
    uint64_t at = number % LINK_FLIGHT;
    bool has_landed = number < landed->end && (landed->bits[at / 64] >> at % 64 & 1) != 0;
    assert(!is_done || has_landed);
  }
}
