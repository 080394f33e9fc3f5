/* SPDX-License-Identifier: Apache-2.0 */
/* link_send: the sender's messages, from their post to the acknowledgement: windows in. Chunks go
 * out in link_step.c; which lane has which is in link_carry.c. */
#include <assert.h>
#include <errno.h>

#include "net_plugin/link/link_state.h"

/* As many lanes are open as the policy wants. What it does not want is closed when nothing is in
 * flight there. */
static void send_want_lanes(struct link *link, uint64_t now_ns) {
  uint64_t spare = lanes_want(link, policy_lanes_wanted(link->policy, now_ns));
  uint64_t busy = link->writing | link->ping | link->pong | lane_bit(link->heard);
  for (spare &= ~busy; spare != 0; spare &= spare - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(spare);
    if (link->lanes[lane].in_flight == 0) {
      lanes_leave(link, lane);
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
                     link->outgoing.posted < link->taken.granted;
  int result = outgoing_post(&link->outgoing, data, bytes, !may_be_read);
  if (result != 0) {
    return result;
  }
  if (is_first) {
    link->liveness.waiting_ns = now_ns;
  }
  struct outgoing *message = &link->outgoing.slots[(link->outgoing.posted - 1) % LINK_WINDOW];
  message->posted_ns = now_ns;
  message->memory = message->is_copied ? NULL : memory;
  message->ll = ll_detect(message->data, bytes);
  policy_posted(link->policy, bytes);
  send_want_lanes(link, now_ns);
  return 0;
}

/* ---- windows ---- */

/* -EPROTO: chunks that were not sent. */
static int send_chunks_landed(struct link *link, uint64_t below, const struct wire_landed *landed,
                              struct carry_acked *acked) {
  struct flight *flight = &link->flight;
  for (unsigned i = 0; i < landed->words; i++) {
    unsigned used = landed->bits[i] != 0 ? 64 - (unsigned)__builtin_clzll(landed->bits[i]) : 0;
    if (used > 0 && below + 64ull * i + used > flight->next) {
      return -EPROTO;
    }
  }
  for (uint64_t number = flight->first; number < below; number++) {
    carry_acked(link, number, acked);
  }
  for (unsigned i = 0; i < landed->words; i++) {
    for (uint64_t bits = landed->bits[i]; bits != 0; bits &= bits - 1) {
      uint64_t number = below + 64ull * i + (unsigned)__builtin_ctzll(bits);
      if (number >= flight->first) {
        carry_acked(link, number, acked);
      }
    }
  }
  return 0;
}

/* The lanes learn what was acknowledged, and when it came; returned is when the last of it did. One
 * that brought nothing of late, as another has brought what it carries, is not known to move; nor
 * is one of which only an old WINDOW says that chunks came. */
static uint64_t send_lanes_acked(struct link *link, const struct wire_landed *landed,
                                 const struct carry_acked *acked, uint64_t now_ns) {
  uint64_t last_ns = 0;
  for (uint64_t lanes = acked->lanes; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    bool has_come = (landed->lanes & lane_bit(lane)) != 0;
    uint64_t held_ns = has_come ? landed->held_us[lane] * 1000 : 0;
    uint64_t arrived_ns = held_ns < now_ns ? now_ns - held_ns : 0;
    last_ns = has_come && arrived_ns > last_ns ? arrived_ns : last_ns;
    if (!link_is_lane_up(link, lane)) {
      continue;
    }
    carry_note_acked(link, lane, acked->bytes[lane], arrived_ns);
    if (has_come) {
      link->lanes[lane].moved_ns = arrived_ns;
      link_moves(link, lane);
      lanes_proved(link, lane);
    }
  }
  return last_ns != 0 ? last_ns : now_ns;
}

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

int send_window_arrived(struct link *link, const struct wire_header *header, const uint8_t *payload,
                        uint64_t now_ns) {
  uint32_t landed_bytes = header->length - (uint32_t)link_remote_buffers_bytes(link, header);
  struct wire_landed landed;
  struct carry_acked acked = { .is_any = false };
  if ((header->offset > link->outgoing.posted && !link->is_detached) ||
      header->number > link->flight.next ||
      wire_landed_decode(payload, landed_bytes, &landed) != 0 ||
      send_chunks_landed(link, header->number, &landed, &acked) != 0) {
    return -EPROTO;
  }
  uint64_t arrived_ns = send_lanes_acked(link, &landed, &acked, now_ns);
  if (acked.is_any) {
    link->moved_ns = arrived_ns;
    link->stuck_ns = link->last_try_ns = 0;
    send_may_end(link);
  } else if (link->last_try_ns != 0 && link->lanes[link->heard].up_ns >= link->last_try_ns) {
    link_fail(link, -ECOMM); /* the first one of a new lane: nothing has landed */
    return 0;
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

/* Nothing more can be delivered. What has landed counts as acknowledged, even if the frames that
 * acknowledge it were overtaken by the BYE. */
void send_bye_arrived(struct link *link, uint64_t landed, uint64_t now_ns) {
  link->is_peer_closed = true;
  link->may_dial = false;
  if (landed < link->outgoing.posted && !link->is_detached) {
    link_fail(link, -ECONNRESET);
    return;
  }
  outgoing_retire_all(&link->outgoing);
  flight_end_all(&link->flight);
  link->announce = 0;
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    link->lanes[lane].in_flight = 0;
    link->lanes[lane].policy.in_flight_bytes = 0;
    link->lanes[lane].is_overtaken = false;
    if (link->lanes[lane].is_writing_data) {
      lanes_fence(link, lane, link->lanes[lane].epoch, now_ns);
    }
  }
}

/* Does the lane still read a payload that is the user's? One that is being written, or, of an
 * RDMA lane, any that is not acknowledged. */
static bool send_is_reading_user(const struct link *link, unsigned lane) {
  const struct flight *flight = &link->flight;
  if (link_lane_reads(&link->lanes[lane]) &&
      !outgoing_is_live(&link->outgoing, link->lanes[lane].chunk)) {
    return true;
  }
  bool is_rdma = (link->rdma & lane_bit(lane)) != 0;
  for (uint64_t number = flight->first; is_rdma && number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    if (flight_is_carried(chunk, lane) && !outgoing_is_live(&link->outgoing, chunk->chunk)) {
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
      flight_end(flight, number);
    }
  }
  for (uint64_t lanes = link->writing | link->rdma; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    /* The frame cannot be finished, so the lane is of no use. */
    if (send_is_reading_user(link, lane)) {
      lanes_fence(link, lane, link->lanes[lane].epoch, now_ns);
    }
  }
  send_may_end(link);
}
