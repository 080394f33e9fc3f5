/* SPDX-License-Identifier: Apache-2.0 */
/* link_carry: which lane carries which chunk, until the peer has the chunk and no lane reads it;
 * and what goes out again on another lane while its own stands still.
 *
 * The peer may have a chunk before a lane has written all of it: another lane has brought it, or
 * the owner of the lane is late with its report. Such a lane is overtaken: until the frame is
 * written it counts as in flight there; and the message, which may be the user's, does not learn of
 * the acknowledgement while a lane reads the payload.
 *
 * A lane stands still while TCP repairs a loss (link_tail.c says when). Its oldest chunks then go
 * out a second time, on a lane that moves, as far as the budget allows; new ones avoid it. The
 * receiver takes whichever copy is complete first.
 *
 * A message does not complete while a lane is writing from it. One that stands still may not take
 * the rest for long: it gets the payload at another place (LINK_ORDER_MOVE). */
#include <string.h>

#include "net_plugin/link/link_state.h"

void send_may_end(struct link *link) {
  if (link->is_detached && link->outgoing.retired == link->outgoing.posted) {
    link->may_dial = false;
    if (link->farewell == FAREWELL_NONE && !link->is_peer_closed) {
      link->farewell = FAREWELL_DUE;
    }
  }
}

void carry_begins(struct link *link, unsigned lane, uint64_t number, uint64_t now_ns) {
  struct link_lane *carrier = &link->lanes[lane];
  struct chunk chunk = flight_at(&link->flight, number)->chunk;
  if (carrier->in_flight == 0) {
    carrier->moved_ns = now_ns;
    link_watch(link, now_ns);
  }
  policy_sent(link->policy, lane, chunk.length, now_ns);
  flight_send(&link->flight, number, lane);
  carrier->number = number;
  carrier->chunk = chunk;
  carrier->in_flight++;
  carrier->policy.in_flight_bytes += chunk.length;
  carrier->counts.bytes_sent += chunk.length;
  carrier->is_writing_data = true;
  carrier->is_copied = chunk.length == 0;
}

static bool carry_is_read(const struct link *link, uint64_t number) {
  for (uint64_t lanes = link->writing; lanes != 0; lanes &= lanes - 1) {
    const struct link_lane *lane = &link->lanes[__builtin_ctzll(lanes)];
    if (link_lane_reads(lane) && lane->number == number) {
      return true;
    }
  }
  return false;
}

void carry_released(struct link *link, unsigned lane) {
  const struct link_lane *carrier = &link->lanes[lane];
  if (carrier->is_overtaken && !carry_is_read(link, carrier->number)) {
    outgoing_acked(&link->outgoing, carrier->chunk);
    send_may_end(link);
  }
}

void carry_stops(struct link *link, unsigned lane) {
  struct link_lane *carrier = &link->lanes[lane];
  bool was_reading = link_lane_reads(carrier);
  carrier->is_writing_data = carrier->is_copied = false;
  if (was_reading) {
    carry_released(link, lane);
  }
  if (carrier->is_overtaken) {
    carrier->is_overtaken = false;
    carrier->in_flight--;
    carrier->policy.in_flight_bytes -= carrier->chunk.length;
    carrier->policy.acked_bytes += carrier->chunk.length;
  }
}

void carry_note_acked(struct link *link, unsigned lane, uint64_t bytes, uint64_t arrived_ns) {
  policy_acked(link->policy, lane, bytes, liveness_has_paused(link, lane), arrived_ns);
}

void carry_written(struct link *link, unsigned lane, uint64_t now_ns) {
  const struct link_lane *carrier = &link->lanes[lane];
  bool was_overtaken = carrier->is_overtaken;
  outgoing_written(&link->outgoing, carrier->chunk);
  carry_stops(link, lane);
  if (was_overtaken) {
    carry_note_acked(link, lane, carrier->chunk.length, now_ns);
  }
}

void carry_acked(struct link *link, uint64_t number, struct carry_acked *acked) {
  const struct flight_chunk *chunk = flight_at(&link->flight, number);
  if (chunk->state == FLIGHT_DONE) {
    return;
  }
  acked->is_any = true;
  for (unsigned i = 0; i < FLIGHT_COPIES && chunk->lanes[i] != FLIGHT_NO_LANE; i++) {
    unsigned lane = chunk->lanes[i];
    struct link_lane *carrier = &link->lanes[lane];
    acked->lanes |= lane_bit(lane);
    if (carrier->is_writing_data && carrier->number == number) {
      carrier->is_overtaken = true;
    } else {
      carrier->in_flight--;
      carrier->policy.in_flight_bytes -= chunk->chunk.length;
      carrier->policy.acked_bytes += chunk->chunk.length;
      acked->bytes[lane] += chunk->chunk.length;
    }
  }
  if (!carry_is_read(link, number)) {
    outgoing_acked(&link->outgoing, chunk->chunk);
  }
  flight_end(&link->flight, number);
}

void carry_settle(struct link *link, unsigned lane) {
  struct flight *flight = &link->flight;
  struct link_lane *lost = &link->lanes[lane];
  for (uint64_t number = flight->first; lost->in_flight > 0; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    if (!flight_is_carried(chunk, lane)) {
      continue;
    }
    lost->in_flight--;
    lost->policy.in_flight_bytes -= chunk->chunk.length;
    if (!flight_give_back(flight, number, lane)) {
      continue;
    }
    if (outgoing_is_live(&link->outgoing, chunk->chunk)) {
      lost->counts.requeued++;
    } else {
      flight_end(flight, number);
    }
  }
}

/* ---- lanes that stand still ---- */

bool repeat_move_payload(struct link *link, struct link_order *order) {
  for (uint64_t lanes = link->still & link->writing; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    struct link_lane *still = &link->lanes[lane];
    struct chunk chunk = still->chunk;
    bool is_wanted =
        still->is_overtaken && link_lane_reads(still) && outgoing_is_live(&link->outgoing, chunk);
    uint8_t *copy = is_wanted ? coding_take_memory(link, lane, chunk.length) : NULL;
    if (copy == NULL) {
      continue;
    }
    memcpy(copy, outgoing_of(&link->outgoing, chunk)->data + chunk.offset, chunk.length);
    still->is_copied = true;
    *order = (struct link_order){ .kind = LINK_ORDER_MOVE, .lane = lane, .payload = copy };
    carry_released(link, lane);
    return true;
  }
  return false;
}

/* The oldest chunk that one lane carries, which stands still; flight.next: none, or too large for
 * what may be sent twice now. */
static uint64_t repeat_next(const struct link *link) {
  const struct flight *flight = &link->flight;
  for (uint64_t number = flight->first; number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    bool is_still = chunk->state == FLIGHT_SENT && chunk->lanes[1] == FLIGHT_NO_LANE &&
                    (link->still & lane_bit(chunk->lanes[0])) != 0;
    if (is_still && outgoing_is_live(&link->outgoing, chunk->chunk)) {
      uint32_t bytes = chunk->chunk.length;
      bool is_affordable = bytes <= link->repeat_budget || bytes <= REPEAT_SMALL_BYTES;
      return is_affordable ? number : flight->next;
    }
  }
  return flight->next;
}

/* The lane with the least to do. */
static int repeat_pick(const struct link *link, uint64_t lanes) {
  int best = -1;
  for (; lanes != 0; lanes &= lanes - 1) {
    int lane = __builtin_ctzll(lanes);
    if (best < 0 ||
        link->lanes[lane].policy.in_flight_bytes < link->lanes[best].policy.in_flight_bytes) {
      best = lane;
    }
  }
  return best;
}

struct repeat_choice repeat_choose(const struct link *link, uint64_t writable) {
  struct repeat_choice choice = { .to = -1 };
  uint64_t moving = writable & link->up & ~link->writing & ~link->still & ~link->rdma;
  if (moving == 0 || link->policy == NULL || link->last_try_ns != 0) {
    return choice;
  }
  choice.number = repeat_next(link);
  choice.to = choice.number < link->flight.next ? repeat_pick(link, moving) : -1;
  return choice;
}

void repeat_take(struct link *link, const struct repeat_choice *choice) {
  uint32_t bytes = flight_at(&link->flight, choice->number)->chunk.length;
  link->repeat_budget -= bytes < link->repeat_budget ? bytes : link->repeat_budget;
  link->counts.repeats++;
  link->counts.repeated_bytes += bytes;
}
