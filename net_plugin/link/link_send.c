/* SPDX-License-Identifier: Apache-2.0 */
/* link_send: the sender's messages, from their post to the acknowledgement, and what becomes of
 * the chunks of a lane that is lost. Chunks go out in link_step.c. */
#include <assert.h>
#include <errno.h>

#include "net_plugin/link/link_state.h"

/* As many lanes are open as the policy wants. What it does not want is closed when nothing is in
 * flight there. */
static void send_want_lanes(struct link *link, uint64_t now_ns) {
  uint64_t spare = failover_want(&link->failover, policy_lanes_wanted(link->policy, now_ns));
  uint64_t busy = link->writing | link->ping | link->pong | lane_bit(link->heard);
  for (spare &= ~busy; spare != 0; spare &= spare - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(spare);
    if (link->lanes[lane].in_flight == 0) {
      failover_leave(&link->failover, lane);
      link_lane_dropped(link, lane);
    }
  }
}

int link_send_posted(struct link *link, const void *data, size_t bytes, const void *memory,
                     uint64_t now_ns) {
  assert(link->config.role == LINK_SENDER && !link->is_detached);
  if (link->status != 0) {
    return link->status;
  }
  if (bytes > WIRE_MAX_MESSAGE_BYTES) {
    return -EMSGSIZE;
  }
  if (link->is_peer_closed) {
    link_fail(link, -ECONNRESET);
    return link->status;
  }
  bool is_first = link->outgoing.retired == link->outgoing.posted;
  now_ns = link_clock(link, now_ns);
  /* The poster of a copied message does not wait for the acknowledgement, which can come along with
   * later ones. A larger message that a NIC may read where it is, and that has credit, is better
   * off without. */
  bool may_be_read = link->known_remote_buffers && bytes > LINK_COPY_BYTES &&
                     link->outgoing.posted < link->taken.granted && link->message_ns < LINK_FAR_NS;
  int result = outgoing_post(&link->outgoing, data, bytes, !may_be_read);
  if (result != 0) {
    return result;
  }
  if (is_first) {
    liveness_waits(&link->liveness, now_ns);
  }
  struct outgoing *message = &link->outgoing.slots[(link->outgoing.posted - 1) % LINK_WINDOW];
  message->posted_ns = now_ns;
  message->memory = message->is_copied ? NULL : memory;
  message->ll = ll_detect(message->data, bytes);
  policy_posted(link->policy, bytes);
  send_want_lanes(link, now_ns);
  return 0;
}

/* Everything that the user left behind is delivered. */
static void send_may_end(struct link *link) {
  if (link->is_detached && link->outgoing.retired == link->outgoing.posted) {
    link->failover.may_dial = false;
    if (link->farewell == FAREWELL_NONE && !link->is_peer_closed) {
      link->farewell = FAREWELL_DUE;
    }
  }
}

/* Messages may have been retired: the youngest took from its post until arrived_ns. */
static void send_note_retired(struct link *link, uint64_t retired_before, uint64_t arrived_ns) {
  const struct outgoing_ring *ring = &link->outgoing;
  if (ring->retired > retired_before) {
    uint64_t posted_ns = ring->slots[(ring->retired - 1) % LINK_WINDOW].posted_ns;
    uint64_t took_ns = arrived_ns > posted_ns ? arrived_ns - posted_ns : 0;
    link->message_ns = (link->message_ns * 3 + took_ns) / 4;
    send_may_end(link);
  }
}

/* ---- chunks ---- */

void send_carries(struct link *link, unsigned lane, uint64_t number, uint64_t now_ns) {
  struct link_lane *carrier = &link->lanes[lane];
  uint32_t bytes = flight_at(&link->flight, number)->chunk.length;
  if (carrier->in_flight == 0) {
    liveness_moved(&link->liveness, lane, now_ns);
    link_watch(link, now_ns);
  }
  policy_sent(link->policy, lane, bytes, now_ns);
  flight_send(&link->flight, number, lane);
  carrier->number = number;
  carrier->in_flight++;
  carrier->in_flight_bytes += bytes;
  carrier->bytes_sent += bytes;
}

static bool send_is_read(const struct link *link, uint64_t number) {
  for (uint64_t lanes = link_reading(link); lanes != 0; lanes &= lanes - 1) {
    if (link->lanes[__builtin_ctzll(lanes)].number == number) {
      return true;
    }
  }
  return false;
}

/* The peer has the chunk, and nobody reads it any more. */
static void send_done(struct link *link, uint64_t number) {
  outgoing_acked(&link->outgoing, flight_at(&link->flight, number)->chunk);
  flight_end(&link->flight, number, FLIGHT_DONE);
}

/* The lane writes no more of a frame whose chunk another lane has brought. */
static void send_overtaken_ends(struct link *link, unsigned lane) {
  struct link_lane *carrier = &link->lanes[lane];
  if (carrier->is_overtaken) {
    carrier->is_overtaken = false;
    carrier->in_flight--;
    carrier->in_flight_bytes -= carrier->overtaken_bytes;
    carrier->bytes_acked += carrier->overtaken_bytes;
  }
}

void send_taken(struct link *link, unsigned lane, uint64_t now_ns) {
  const struct link_lane *carrier = &link->lanes[lane];
  if (carrier->is_overtaken) {
    send_overtaken_ends(link, lane);
    policy_acked(link->policy, lane, carrier->overtaken_bytes, now_ns);
  }
  if (carrier->number >= link->flight.first) {
    outgoing_written(&link->outgoing, flight_at(&link->flight, carrier->number)->chunk);
  }
  send_released(link, lane, now_ns);
}

void send_released(struct link *link, unsigned lane, uint64_t now_ns) {
  uint64_t number = link->lanes[lane].number, retired = link->outgoing.retired;
  if (number >= link->flight.first && number < link->flight.next &&
      flight_at(&link->flight, number)->state == FLIGHT_HELD && !send_is_read(link, number)) {
    send_done(link, number);
    send_note_retired(link, retired, now_ns);
  }
}

/* What a WINDOW acknowledges, by the lanes that carried it. */
struct acked {
  uint64_t lanes;
  uint64_t bytes[WIRE_MAX_LANES]; /* of these */
  bool is_any;
};

static void send_chunk_acked(struct link *link, uint64_t number, struct acked *acked) {
  const struct flight_chunk *chunk = flight_at(&link->flight, number);
  if (chunk->state == FLIGHT_DONE || chunk->state == FLIGHT_HELD) {
    return;
  }
  acked->is_any = true;
  for (unsigned i = 0; i < FLIGHT_COPIES && chunk->lanes[i] != FLIGHT_NO_LANE; i++) {
    unsigned lane = chunk->lanes[i];
    if ((link->writing_data & lane_bit(lane)) != 0 && link->lanes[lane].number == number) {
      link->lanes[lane].is_overtaken = true;
      link->lanes[lane].overtaken_bytes = chunk->chunk.length;
      continue;
    }
    acked->bytes[lane] = (acked->lanes & lane_bit(lane)) != 0 ? acked->bytes[lane] : 0;
    acked->bytes[lane] += chunk->chunk.length;
    acked->lanes |= lane_bit(lane);
    link->lanes[lane].in_flight--;
    link->lanes[lane].in_flight_bytes -= chunk->chunk.length;
  }
  if (send_is_read(link, number)) {
    flight_end(&link->flight, number, FLIGHT_HELD);
  } else {
    send_done(link, number);
  }
}

/* -EPROTO: chunks that were not sent. */
static int send_chunks_landed(struct link *link, uint64_t below, const struct wire_landed *landed,
                              struct acked *acked) {
  struct flight *flight = &link->flight;
  for (unsigned i = 0; i < landed->words; i++) {
    unsigned used = landed->bits[i] != 0 ? 64 - (unsigned)__builtin_clzll(landed->bits[i]) : 0;
    if (used > 0 && below + 64ull * i + used > flight->next) {
      return -EPROTO;
    }
  }
  for (uint64_t number = flight->first; number < below; number++) {
    send_chunk_acked(link, number, acked);
  }
  for (unsigned i = 0; i < landed->words; i++) {
    for (uint64_t bits = landed->bits[i]; bits != 0; bits &= bits - 1) {
      uint64_t number = below + 64ull * i + (unsigned)__builtin_ctzll(bits);
      if (number >= flight->first) {
        send_chunk_acked(link, number, acked);
      }
    }
  }
  return 0;
}

/* The lanes learn what was acknowledged, and when it came. One that brought nothing of late, as
 * another has brought what it carries, is not known to move. */
static void send_lanes_acked(struct link *link, const struct wire_landed *landed,
                             const struct acked *acked, uint64_t now_ns) {
  for (uint64_t lanes = (acked->lanes | landed->lanes) & lanes_below(link->config.policy.lanes);
       lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t bytes = (acked->lanes & lane_bit(lane)) != 0 ? acked->bytes[lane] : 0;
    bool has_come = (landed->lanes & lane_bit(lane)) != 0;
    uint64_t held_ns = has_come ? landed->held_us[lane] * 1000ull : 0;
    uint64_t arrived_ns = held_ns < now_ns ? now_ns - held_ns : 0;
    link->lanes[lane].bytes_acked += bytes;
    if (!link_is_lane_up(link, lane)) {
      if (link->lanes[lane].in_flight == 0) {
        failover_settle(&link->failover, lane);
      }
      continue;
    }
    if ((acked->lanes & lane_bit(lane)) != 0) {
      policy_acked(link->policy, lane, bytes, arrived_ns);
    }
    if (has_come && arrived_ns > link->lanes[lane].moved_ns) {
      liveness_moved(&link->liveness, lane, arrived_ns);
      link_moves(link, lane);
      failover_proved(&link->failover, lane);
    }
  }
}

/* ---- windows ---- */

/* A WINDOW that was overtaken by a later one still has remote buffers that are worth knowing.
 * Counted down, as the last of a hostile one may have the largest number there is. */
static void send_remote_buffers_arrived(struct link *link, const struct wire_header *header,
                                        const uint8_t *bytes) {
  for (uint64_t left = header->total; left > 0; left--) {
    uint64_t end = header->message - left + 1;
    struct known_remote_buffer *told = &link->known_remote_buffers[(end - 1) % LINK_WINDOW];
    if (end > told->end) {
      told->end = end;
      wire_remote_buffer_decode(bytes, link->config.remote_keys, &told->remote_buffer);
    }
    bytes += wire_remote_buffer_bytes(link->config.remote_keys);
  }
}

/* How long ago the last chunk came. */
static uint64_t send_least_held_ns(const struct wire_landed *landed) {
  uint64_t least_us = landed->lanes != 0 ? UINT64_MAX : 0;
  for (uint64_t lanes = landed->lanes; lanes != 0; lanes &= lanes - 1) {
    uint64_t held_us = landed->held_us[__builtin_ctzll(lanes)];
    least_us = held_us < least_us ? held_us : least_us;
  }
  return least_us * 1000;
}

int send_window_arrived(struct link *link, const struct wire_header *header, const uint8_t *payload,
                        uint64_t now_ns) {
  uint32_t landed_bytes = header->length - (uint32_t)link_remote_buffers_bytes(link, header);
  struct wire_landed landed;
  struct acked acked;
  acked.lanes = 0;
  acked.is_any = false;
  uint64_t retired = link->outgoing.retired;
  if ((header->offset > link->outgoing.posted && !link->is_detached) ||
      header->number > link->flight.next ||
      wire_landed_decode(payload, landed_bytes, &landed) != 0 ||
      send_chunks_landed(link, header->number, &landed, &acked) != 0) {
    return -EPROTO;
  }
  send_lanes_acked(link, &landed, &acked, now_ns);
  if (acked.is_any) {
    uint64_t held_ns = send_least_held_ns(&landed);
    link->acked_ns = held_ns < now_ns ? now_ns - held_ns : 0;
    link->stuck_ns = link->last_try_ns = 0;
    send_note_retired(link, retired, link->acked_ns);
  }
  if (header->message > link->taken.granted) {
    link->taken.granted = header->message;
  }
  if (header->total > 0) {
    send_remote_buffers_arrived(link, header, payload + landed_bytes);
  }
  send_want_lanes(link, now_ns);
  return 0;
}

/* ---- lanes ---- */

/* The lane is lost with something in flight. A lane that was up before anything was stuck says
 * nothing about the path that those have which replace it. */
static void send_note_vain_lane(struct link *link, unsigned lane) {
  uint64_t moved_ns = link->lanes[lane].moved_ns;
  if (link->stuck_ns == 0) {
    link->stuck_ns = moved_ns > link->acked_ns ? moved_ns : link->acked_ns;
    link->vain_lanes = 0;
  } else if (link->lanes[lane].up_ns > link->stuck_ns) {
    link->vain_lanes++;
  }
}

/* What no other lane carries is to be sent again. */
static void send_give_back(struct link *link, unsigned lane) {
  struct flight *flight = &link->flight;
  struct link_lane *lost = &link->lanes[lane];
  for (uint64_t number = flight->first; lost->in_flight > 0 && number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    if (chunk->state != FLIGHT_SENT || !flight_is_carried(chunk, lane)) {
      continue;
    }
    lost->in_flight--;
    if (!flight_give_back(flight, number, lane)) {
      continue;
    }
    if (outgoing_is_live(&link->outgoing, chunk->chunk)) {
      lost->requeued++;
    } else {
      flight_end(flight, number, FLIGHT_DONE);
    }
  }
  lost->in_flight_bytes = 0;
}

void send_lane_dropped(struct link *link, unsigned lane, bool was_rdma) {
  struct link_lane *dropped = &link->lanes[lane];
  bool had_any = dropped->in_flight > 0;
  policy_lane_lost(link->policy, lane);
  send_overtaken_ends(link, lane);
  send_released(link, lane, link->now_ns);
  if (had_any) {
    send_note_vain_lane(link, lane);
  }
  if (!was_rdma) {
    send_give_back(link, lane);
  } else if (dropped->in_flight > 0) {
    link->failover.unsettled |= lane_bit(lane);
  }
  link->failover.announce |= lane_bit(lane) & link->failover.lost;
  link->taken.requested = 0; /* a REQUEST may have been lost with it: ask again */
}

void send_settle(struct link *link, unsigned lane) {
  assert(link->lanes[lane].in_flight == 0 || (link->failover.unsettled & lane_bit(lane)) != 0);
  send_give_back(link, lane);
  failover_settle(&link->failover, lane);
}

/* Nothing more can be delivered. What has landed counts as acknowledged, even if the frames that
 * acknowledge it were overtaken by the BYE. */
void send_bye_arrived(struct link *link, uint64_t landed, uint64_t now_ns) {
  link->is_peer_closed = true;
  link->failover.may_dial = false;
  if (landed < link->outgoing.posted && !link->is_detached) {
    link_fail(link, -ECONNRESET);
    return;
  }
  outgoing_retire_all(&link->outgoing);
  link->flight.first = link->flight.next;
  link->flight.unsent = 0;
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    link->lanes[lane].in_flight = 0;
    link->lanes[lane].in_flight_bytes = 0;
    link->lanes[lane].is_overtaken = false;
    failover_settle(&link->failover, lane);
    if ((link->writing_data & lane_bit(lane)) != 0) {
      link_fence_lane(link, lane, link->lanes[lane].epoch, now_ns);
    }
  }
}

/* Does the lane still read a payload that is the user's? One that is being written, or, of an
 * RDMA lane, any that is not acknowledged. */
static bool send_is_reading_user(const struct link *link, unsigned lane) {
  const struct flight *flight = &link->flight;
  bool is_reading = (link_reading(link) & lane_bit(lane)) != 0;
  bool is_rdma = (link->rdma & lane_bit(lane)) != 0;
  for (uint64_t number = flight->first; number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    bool is_read = (is_reading && link->lanes[lane].number == number) ||
                   (is_rdma && flight_is_carried(chunk, lane));
    if (is_read && !outgoing_is_live(&link->outgoing, chunk->chunk)) {
      return true;
    }
  }
  return false;
}

void send_detach(struct link *link, uint64_t now_ns) {
  struct flight *flight = &link->flight;
  outgoing_truncate(&link->outgoing);
  for (uint64_t number = flight->first; number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    if (chunk->state == FLIGHT_UNSENT && !outgoing_is_live(&link->outgoing, chunk->chunk)) {
      flight_end(flight, number, FLIGHT_DONE);
    }
  }
  for (uint64_t lanes = link_reading(link) | link->rdma; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    /* The frame cannot be finished, so the lane is of no use. */
    if (send_is_reading_user(link, lane)) {
      link_fence_lane(link, lane, link->lanes[lane].epoch, now_ns);
    }
  }
  send_may_end(link);
}
