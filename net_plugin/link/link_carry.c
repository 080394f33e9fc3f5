/* SPDX-License-Identifier: Apache-2.0 */
/* link_carry: which lane carries which chunk, until the peer has the chunk and no lane reads it.
 *
 * The peer may have a chunk before a lane has written all of it: another lane has brought it, or
 * the owner of the lane is late with its report. Such a lane is overtaken: until the frame is
 * written it counts as in flight there; and the message, which may be the user's, does not learn of
 * the acknowledgement while a lane reads the payload. */
#include "net_plugin/link/link_state.h"

void send_may_end(struct link *link) {
  if (link->is_detached && link->outgoing.retired == link->outgoing.posted) {
    link->may_dial = false;
    if (link->farewell == FAREWELL_NONE && !link->is_peer_closed) {
      link->farewell = FAREWELL_DUE;
    }
  }
}

void send_note_retired(struct link *link, uint64_t retired_before, uint64_t arrived_ns) {
  const struct outgoing_ring *ring = &link->outgoing;
  if (ring->retired > retired_before) {
    uint64_t posted_ns = ring->slots[(ring->retired - 1) % LINK_WINDOW].posted_ns;
    uint64_t took_ns = arrived_ns > posted_ns ? arrived_ns - posted_ns : 0;
    link->message_ns = (link->message_ns * 3 + took_ns) / 4;
    send_may_end(link);
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
  link->writing_data |= lane_bit(lane);
  link->copied |= chunk.length == 0 ? lane_bit(lane) : 0;
}

static bool carry_is_read(const struct link *link, uint64_t number) {
  for (uint64_t lanes = link_reading(link); lanes != 0; lanes &= lanes - 1) {
    if (link->lanes[__builtin_ctzll(lanes)].number == number) {
      return true;
    }
  }
  return false;
}

void carry_released(struct link *link, unsigned lane, uint64_t now_ns) {
  const struct link_lane *carrier = &link->lanes[lane];
  if (carrier->is_overtaken && !carry_is_read(link, carrier->number)) {
    uint64_t retired = link->outgoing.retired;
    outgoing_acked(&link->outgoing, carrier->chunk);
    send_note_retired(link, retired, now_ns);
  }
}

void carry_stops(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *carrier = &link->lanes[lane];
  bool was_reading = (link_reading(link) & lane_bit(lane)) != 0;
  link->writing_data &= ~lane_bit(lane);
  link->copied &= ~lane_bit(lane);
  if (was_reading) {
    carry_released(link, lane, now_ns);
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
  carry_stops(link, lane, now_ns);
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
    if ((link->writing_data & lane_bit(lane)) != 0 && carrier->number == number) {
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
