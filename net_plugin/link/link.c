/* SPDX-License-Identifier: Apache-2.0 */
/* link: what both roles share: lanes that come and go, frames that arrive, orders, the end. Frames
 * that leave are in link_step.c, the sender's and the receiver's parts in link_send.c and
 * link_receive.c.
 *
 * A message's way: link_send_posted -> link_step (policy, flight) -> the peer's
 * link_frame_received, link_frame_completed (message, credit) -> its link_step (WINDOW) -> our
 * link_frame_completed (flight, message) -> link_step (completion). */
#include "net_plugin/link/link.h"

#include <assert.h>
#include <errno.h>

#include "common/hash.h"
#include "common/plain.h"
#include "net_plugin/link/link_state.h"

/* ---- lanes come and go ---- */

/* The lane broke the protocol, or showed that it delivers wrong bytes: nothing of it counts from
 * here on. The owner closes it on seeing `error`. */
static int link_break_lane(struct link *link, unsigned lane, int error, uint64_t now_ns) {
  lanes_lose(link, lane, link->lanes[lane].epoch, true, now_ns);
  return error;
}

/* Nothing was heard for long. Before liveness is told of what ends it. */
static bool link_was_silent(const struct link *link, uint64_t now_ns) {
  return now_ns - link->liveness.spoke_ns >= link_doubt_ns(link);
}

/* There was no path, or the peer did not run: what is passed from now on is still to be seen. */
static void link_stuck_anew(struct link *link, uint64_t now_ns) {
  if (link->stuck_ns != 0) {
    link->stuck_ns = now_ns - 1;
    link->vain_lanes = 0;
    link->last_try_ns = 0;
  }
}

void link_lane_up(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  assert(lane < link->config.policy.lanes);
  now_ns = link_note_time(link, now_ns);
  if (link->status != 0) {
    return;
  }
  struct link_lane *risen = &link->lanes[lane];
  bool was_down = link->up == 0 && now_ns - link->down_since_ns >= link_doubt_ns(link);
  if (!lanes_come_up(link, lane, epoch, now_ns)) {
    return;
  }
  if (was_down || (link->vain_lanes == 0 && link_was_silent(link, now_ns))) {
    link_stuck_anew(link, now_ns);
  }
  liveness_heard(link, lane, now_ns); /* its handshake */
  link->heard = lane;
  risen->up_ns = now_ns;
  risen->control = link->controls + lane * link->control_stride;
  if (link->config.role == LINK_SENDER) {
    carry_settle(link, lane);
    policy_lane_up(link->policy, lane, now_ns);
  } else {
    receive_lane_up(link, lane);
  }
}

uint64_t link_wants_measured(struct link *link, uint64_t now_ns) {
  link->policy_asks =
      link->policy ? policy_wants_measured(link->policy, link_later(link, now_ns)) : 0;
  return link->policy_asks | link->tails_due;
}

void link_lane_measured(struct link *link, unsigned lane, const struct policy_transport *transport,
                        uint64_t now_ns) {
  if (!link_is_lane_up(link, lane)) {
    return;
  }
  now_ns = link_clock(link, now_ns);
  if ((link->policy_asks & lane_bit(lane)) != 0) {
    policy_measured(link->policy, lane, transport, now_ns);
  }
  if ((link->tails_due & lane_bit(lane)) != 0 &&
      link_tail_measured(link, lane, transport, now_ns)) {
    link_stands_still(link, lane);
  }
}

void link_lane_is_rdma(struct link *link, unsigned lane) {
  assert(link->config.role == LINK_SENDER || !link->is_detached);
  if (link_is_lane_up(link, lane)) {
    link->rdma |= lane_bit(lane);
    link_tail_dropped(link, lane);
  }
}

void link_lane_outdated(struct link *link, unsigned lane, uint64_t now_ns) {
  assert(link->config.role == LINK_SENDER && lane < link->config.policy.lanes);
  now_ns = link_note_time(link, now_ns);
  if (link->status == 0) {
    lanes_cut(link, lane, LINK_CLOSE_BETTER, now_ns);
  }
}

void link_lane_lost(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  assert(lane < link->config.policy.lanes);
  lanes_lose(link, lane, epoch, true, link_note_time(link, now_ns));
}

void link_lane_left(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  assert(lane < link->config.policy.lanes);
  lanes_lose(link, lane, epoch, false, link_note_time(link, now_ns));
}

void link_lane_refused(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  assert(link->config.role == LINK_SENDER && lane < link->config.policy.lanes);
  now_ns = link_note_time(link, now_ns);
  if (!lanes_refuse(link, lane, epoch)) {
    lanes_lose(link, lane, epoch, true, now_ns);
  }
}

bool link_lane_fence(struct link *link, unsigned lane, uint32_t new_epoch, uint64_t now_ns) {
  assert(link->config.role == LINK_RECEIVER);
  if (lane >= link->config.policy.lanes || link->status != 0) {
    return false;
  }
  const struct link_lane *fenced = &link->lanes[lane];
  if (new_epoch <= fenced->epoch || new_epoch <= fenced->fenced_epoch) {
    return false;
  }
  lanes_fence(link, lane, new_epoch - 1, link_clock(link, now_ns));
  return true;
}

/* ---- frames in ---- */

static bool is_window_possible(const struct link *link, const struct wire_header *header) {
  uint64_t remote_buffers = link_remote_buffers_bytes(link, header);
  return (header->total == 0 || link->config.remote_keys > 0) && remote_buffers <= header->length &&
         header->length - remote_buffers <= WIRE_MAX_LANDED_BYTES;
}

static int link_frame_begins(struct link *link, unsigned lane) {
  static const bool may_get[WIRE_TYPE_END][2] = {
    [WIRE_DATA] = { [LINK_RECEIVER] = true },
    [WIRE_REQUEST] = { [LINK_RECEIVER] = true },
    [WIRE_WINDOW] = { [LINK_SENDER] = true },
    [WIRE_CLOSED] = { true, true },
    [WIRE_BYE] = { true, true },
    [WIRE_PING] = { true, true },
    [WIRE_PONG] = { true, true },
    [WIRE_ABORT] = { true, true },
  };
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_header *header = &receiving->header;
  receiving->buffer = NULL;
  if (header->type >= WIRE_TYPE_END || !may_get[header->type][link->config.role] ||
      (header->type == WIRE_WINDOW && !is_window_possible(link, header))) {
    return -EPROTO;
  }
  if (header->type == WIRE_DATA) {
    return receive_data_begins(link, lane);
  }
  receiving->buffer = header->type == WIRE_WINDOW  ? receiving->control
                      : header->type == WIRE_ABORT ? (uint8_t *)link->peer_reason
                                                   : NULL;
  receiving->arrival = ARRIVAL_CONTROL;
  return 0;
}

int link_frame_received(struct link *link, unsigned lane, const struct wire_header *header,
                        uint64_t now_ns) {
  if (link->status != 0 || !link_is_lane_up(link, lane)) {
    return -ESTALE;
  }
  struct link_lane *receiving = &link->lanes[lane];
  if (receiving->arrival != ARRIVAL_NONE) {
    return link_break_lane(link, lane, -EPROTO, link_clock(link, now_ns));
  }
  now_ns = link_note_time(link, now_ns);
  bool is_unasked = header->type == WIRE_PONG && header->message == LINK_UNASKED;
  link->heard = is_unasked ? link->heard : lane; /* the peer lacks what it got there */
  if (header->type == WIRE_PONG && !is_unasked) {
    link_tail_answered(link, lane, now_ns);
  }
  if (link_was_silent(link, now_ns)) {
    link_stuck_anew(link, now_ns);
  }
  if (header->type == WIRE_PING || is_unasked) {
    liveness_spoke(link, lane, now_ns);
  } else {
    liveness_heard(link, lane, now_ns);
  }
  receiving->header = *header;
  int result = link_frame_begins(link, lane);
  if (result == -EMSGSIZE) {
    link_fail(link, result); /* the lane can still carry the ABORT */
  } else if (result != 0) {
    link_break_lane(link, lane, result, now_ns);
  }
  return result;
}

void link_bytes_arrived(struct link *link, unsigned lane, uint64_t now_ns) {
  if (link_is_lane_up(link, lane)) {
    now_ns = link_note_time(link, now_ns);
    liveness_heard(link, lane, now_ns);
    link_partial_arrived(link, lane, now_ns);
  }
}

void *link_receive_buffer(struct link *link, unsigned lane) {
  if (lane >= link->config.policy.lanes || wire_stream_bytes(&link->lanes[lane].header) == 0) {
    return NULL;
  }
  return link->lanes[lane].buffer;
}

/* The peer has closed its end of a lane: because it lost it, or because we did. */
static int link_closed_arrived(struct link *link, const struct wire_header *header,
                               uint64_t now_ns) {
  if (header->message >= link->config.policy.lanes) {
    return -EPROTO;
  }
  unsigned lane = (unsigned)header->message;
  uint32_t epoch = (uint32_t)header->offset;
  lanes_fence(link, lane, epoch, now_ns);
  if (link->config.role == LINK_RECEIVER) {
    link->announce |= lane_bit(lane);
  } else if (!link_is_lane_up(link, lane) && link->lanes[lane].fenced_epoch <= epoch) {
    carry_settle(link, lane);
  }
  return 0;
}

/* A frame without data for messages. */
static int link_control_arrived(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_header *header = &receiving->header;
  switch (header->type) {
  case WIRE_WINDOW:
    if ((header->flags & WIRE_HAS_CRC) != 0 &&
        hash_crc32c(0, receiving->control, header->length) != header->payload_crc) {
      return -EBADMSG;
    }
    return send_window_arrived(link, header, receiving->control, now_ns);
  case WIRE_CLOSED:
    return link_closed_arrived(link, header, now_ns);
  case WIRE_REQUEST:
    receive_request_arrived(link, header->message);
    return 0;
  case WIRE_BYE:
    if (link->config.role == LINK_SENDER) {
      send_bye_arrived(link, header->offset, now_ns);
    } else {
      receive_bye_arrived(link);
    }
    return 0;
  case WIRE_PING:
    receiving->pong_token = header->message;
    link->pong |= lane_bit(lane);
    return 0;
  case WIRE_ABORT:
    link->peer_error = -(int)header->offset;
    link->peer_reason[header->length] = '\0';
    plain_text(link->peer_reason); /* it goes into logs */
    link_fail(link, -ECONNABORTED);
    return 0;
  default: /* a PONG: that it came is what counts */
    return 0;
  }
}

int link_frame_completed(struct link *link, unsigned lane, uint64_t now_ns) {
  if (link->status != 0 || !link_is_lane_up(link, lane)) {
    return -ESTALE;
  }
  struct link_lane *receiving = &link->lanes[lane];
  int result;
  now_ns = link_clock(link, now_ns);
  link_partial_ended(link, lane);
  switch (receiving->arrival) {
  case ARRIVAL_NONE:
    result = -EPROTO;
    break;
  case ARRIVAL_CONTROL:
    receiving->arrival = ARRIVAL_NONE;
    receiving->buffer = NULL;
    result = link_control_arrived(link, lane, now_ns);
    break;
  default:
    result = receive_data_ends(link, lane, now_ns);
    if (result == 0) {
      receiving->arrival = ARRIVAL_NONE;
      receiving->buffer = NULL;
    }
    break;
  }
  if (result != 0) {
    return link_break_lane(link, lane, result, now_ns);
  }
  return link_is_lane_up(link, lane) ? 0 : -ESTALE; /* a fence may have closed its own lane */
}

/* ---- end ---- */

void link_user_detached(struct link *link, uint64_t now_ns) {
  if (link->is_detached) {
    return;
  }
  link->is_detached = true;
  now_ns = link_clock(link, now_ns);
  if (link->config.role == LINK_SENDER) {
    send_detach(link, now_ns);
  } else {
    receive_detach(link, now_ns);
  }
}

bool link_needs_memory(const struct link *link, uint64_t number) {
  uint64_t slot = number % LINK_WINDOW;
  if (link->config.role == LINK_SENDER) {
    const struct outgoing_ring *ring = &link->outgoing;
    return number >= ring->retired && number < ring->posted && !ring->slots[slot].is_copied &&
           ring->slots[slot].bytes > 0;
  }
  const struct incoming_ring *ring = &link->incoming;
  return number >= ring->completed && number < ring->posted &&
         ring->slots[incoming_slot(number)].capacity > 0;
}

bool link_has_last_word(const struct link *link) {
  return link->status != 0 &&
         ((link->farewell == FAREWELL_DUE && link->up != 0) || link->farewell == FAREWELL_WRITING);
}

struct wire_near link_near(const struct link *link) {
  return (struct wire_near){ .message = link->incoming.completed, .number = link->landed.first };
}

int link_status(const struct link *link) {
  return link->status;
}

bool link_is_finished(const struct link *link) {
  if (link->status != 0) {
    return true;
  }
  if (!link->is_detached) {
    return false;
  }
  if (link->farewell == FAREWELL_WRITTEN || link->is_peer_closed) {
    return true;
  }
  /* With nothing to deliver no lane is opened, not even for a BYE. */
  return link->config.role == LINK_SENDER && link->farewell == FAREWELL_DUE && link->up == 0;
}

bool link_is_peer_closed(const struct link *link) {
  return link->is_peer_closed;
}
