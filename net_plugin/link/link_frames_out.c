/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that leave a link: which lane carries the next one, and what it is: control before data,
 * what is most urgent first; of data what is sent again before what is new. */
#include <string.h>

#include "common/hash.h"
#include "net_plugin/link/link_state.h"

/* ---- what there is to send, and where ---- */

/* What is polled must not show before it is known to be right, nor in another order. */
static bool send_may_place(const struct link *link, const struct outgoing *message) {
  return message->ll == LL_NONE || (message->ll == LL_WORDS && !link->config.wants_checksums);
}

/* What was begun before a lane that places came up goes on as it began. */
bool send_is_eager(const struct link *link, const struct outgoing *message) {
  bool waits_for_remote_buffer = link_placing_lanes(link) != 0 && message->cut == 0 &&
                                 message->bytes > LINK_PLACE_BYTES && send_may_place(link, message);
  return message->bytes <= link->config.eager_bytes && !waits_for_remote_buffer;
}

struct send_ahead send_look_ahead(const struct link *link) {
  const struct outgoing_ring *ring = &link->outgoing;
  const struct outgoing *message = outgoing_cutting(ring);
  bool is_eager = message != NULL && send_is_eager(link, message);
  bool is_allowed = message != NULL && credit_allows(&link->taken, ring->cutting, is_eager);
  bool is_repeat = link->requeue.count > 0;
  return (struct send_ahead){
    .has_chunk = (is_allowed || is_repeat) && link->last_try_ns == 0,
    .needs_request = message != NULL && !is_allowed &&
                     credit_must_request(&link->taken, ring->cutting, is_eager),
    .left = is_repeat || message == NULL ? UINT64_MAX : message->bytes - message->cut,
  };
}

/* A REQUEST is being written: the number of the message that it is for. */
static uint64_t send_request(struct link *link) {
  link->stalls++;
  credit_request(&link->taken, link->outgoing.cutting);
  return link->outgoing.cutting;
}

/* A control frame that any lane may carry is waiting. */
static bool link_has_control(const struct link *link, const struct send_ahead *ahead) {
  if (link->status != 0) {
    return link->farewell == FAREWELL_DUE;
  }
  return link->failover.announce != 0 || link->given.is_due || ahead->needs_request ||
         link->farewell == FAREWELL_DUE;
}

/* The policy may want to wait for a lane, but not for one that stands still, nor for one that is
 * kept for repeats. */
static int link_pick_for_chunk(const struct link *link, uint64_t candidates, uint64_t left) {
  uint64_t usual = repeat_lanes_for_new(link, candidates) & ~link->full;
  int picked = policy_pick(link->policy, usual, left, link->now_ns);
  uint64_t moving = candidates & ~link->still & ~link->full;
  if (picked < 0 && (moving & ~usual) != 0) {
    picked = policy_pick(link->policy, moving, left, link->now_ns);
  }
  for (uint64_t lanes = usual; picked < 0 && link->still != 0 && lanes != 0; lanes &= lanes - 1) {
    int lane = __builtin_ctzll(lanes);
    picked = journal_count(&link->lanes[lane].journal) == 0 ? lane : -1;
  }
  return picked;
}

int link_pick_lane(const struct link *link, const struct send_ahead *ahead, uint64_t writable,
                   struct repeat_choice *repeat) {
  repeat->to = -1;
  uint64_t candidates = writable & link->failover.up & ~link->writing;
  if (candidates == 0) {
    return -1;
  }
  if (link_has_control(link, ahead)) {
    uint64_t moving = candidates & ~link->still;
    candidates = moving != 0 ? moving : candidates;
    /* The lane that brought the last frame works, and nothing else may be known of the others. */
    return (candidates & lane_bit(link->heard)) != 0 ? (int)link->heard
                                                     : __builtin_ctzll(candidates);
  }
  if (link->status != 0) {
    return -1;
  }
  if ((candidates & (link->pong | link->ping)) != 0) {
    return __builtin_ctzll(candidates & (link->pong | link->ping));
  }
  if (link->still != 0) {
    *repeat = repeat_choose(link, candidates);
  }
  return repeat->to >= 0 || !ahead->has_chunk ? repeat->to
                                              : link_pick_for_chunk(link, candidates, ahead->left);
}

/* ---- control frames ---- */

static void link_fill_farewell(struct link *link, unsigned lane, struct wire_header *header) {
  link->farewell = FAREWELL_WRITING;
  link->farewell_lane = lane;
  if (link->status != 0) {
    header->type = WIRE_ABORT;
    header->offset = (uint64_t)-link->status;
    header->length = (uint32_t)strlen(link->reason);
  } else {
    header->type = WIRE_BYE;
    header->offset = link->config.role == LINK_SENDER ? 0 : incoming_landed(&link->incoming);
  }
}

/* Fills in the control frame that is most urgent; false: none. */
static bool link_next_control(struct link *link, const struct send_ahead *ahead, unsigned lane,
                              struct wire_header *header, uint64_t now_ns) {
  *header = (struct wire_header){ 0 };
  if (link->status != 0) {
    link_fill_farewell(link, lane, header);
  } else if (link->failover.announce != 0) {
    unsigned announced = (unsigned)__builtin_ctzll(link->failover.announce);
    link->failover.announce &= link->failover.announce - 1;
    if (link->config.role == LINK_SENDER) {
      header->type = WIRE_FENCE;
      header->message = announced;
      header->offset = link->lanes[announced].sent_epoch;
    } else {
      receive_fill_fenced(link, announced, header);
    }
  } else if (link->given.is_due) {
    receive_fill_window(link, lane, header, now_ns);
  } else if (ahead->needs_request) {
    header->type = WIRE_REQUEST;
    header->message = send_request(link);
  } else if ((link->pong & lane_bit(lane)) != 0) {
    link->pong &= ~lane_bit(lane);
    header->type = WIRE_PONG;
    header->message = link->lanes[lane].pong_token;
  } else if ((link->ping & lane_bit(lane)) != 0) {
    link->ping &= ~lane_bit(lane);
    header->type = WIRE_PING;
    header->message = ++link->pings_sent;
    liveness_asked(&link->liveness, lane, now_ns);
    link_watch(link, now_ns);
  } else if (link->farewell == FAREWELL_DUE) {
    link_fill_farewell(link, lane, header);
  } else {
    return false;
  }
  if (header->type >= WIRE_REQUEST && header->type <= WIRE_FENCED) {
    liveness_told(&link->liveness, lane, now_ns);
    link_tail_written(link, lane, now_ns);
    link_watch(link, now_ns);
  }
  return true;
}

/* ---- chunks ---- */

/* Where an RDMA lane may write the chunk; NULL: nowhere. */
static const struct wire_remote_buffer *send_remote_buffer(const struct link *link, unsigned lane,
                                                           const struct outgoing *message,
                                                           uint64_t number) {
  if (!link_lane_places(link, lane) || !send_may_place(link, message)) {
    return NULL;
  }
  const struct known_remote_buffer *told = &link->known_remote_buffers[number % LINK_WINDOW];
  bool has_room = told->remote_buffer.address != 0 && message->bytes <= told->remote_buffer.bytes;
  return told->end == number + 1 && has_room ? &told->remote_buffer : NULL;
}

/* Of the message that is being cut. */
static uint32_t send_chunk_bytes(const struct link *link, unsigned lane) {
  const struct outgoing *message = outgoing_cutting(&link->outgoing);
  uint64_t left = message->bytes - message->cut;
  bool is_placed = send_remote_buffer(link, lane, message, link->outgoing.cutting) != NULL;
  uint32_t length = policy_chunk_bytes(link->policy, lane, message->bytes, left, is_placed);
  /* Also of what is placed: if its lane is lost, another one may have to carry it as a stream. */
  bool is_limited = message->ll != LL_NONE && length > WIRE_MAX_LL_BYTES;
  return is_limited ? WIRE_MAX_LL_BYTES : length;
}

/* The low half of a message number, made whole: no live message is LINK_WINDOW away from retired.
 */
static uint64_t send_message_number(const struct link *link, struct chunk chunk) {
  uint64_t retired = link->outgoing.retired;
  return retired + (uint32_t)(chunk.message - (uint32_t)retired);
}

/* origin: of a repeat; NULL: it is none. */
static void send_chunk(struct link *link, unsigned lane, struct chunk chunk,
                       const struct wire_origin *origin, struct link_frame *frame,
                       uint64_t now_ns) {
  struct link_lane *sending = &link->lanes[lane];
  const struct outgoing *message = outgoing_of(&link->outgoing, chunk);
  struct wire_header header = {
    .type = WIRE_DATA,
    .length = chunk.length,
    .message = send_message_number(link, chunk),
    .offset = chunk.offset,
    .total = message->bytes,
  };
  if (!message->is_copied) {
    header.flags |= WIRE_WANTS_ACK;
  }
  if (origin != NULL) {
    header.flags |= WIRE_IS_REPEAT;
    header.origin = *origin;
  }
  frame->length = chunk.length;
  frame->payload = chunk.length > 0 ? message->data + chunk.offset : NULL;
  frame->memory = message->memory;
  frame->remote_buffer =
      chunk.length > 0 ? send_remote_buffer(link, lane, message, header.message) : NULL;
  frame->offset = chunk.offset;
  if (message->ll != LL_NONE && frame->remote_buffer == NULL) {
    header.flags |= WIRE_IS_LL;
  }
  if (link->config.wants_checksums && chunk.length > 0) {
    header.flags |= WIRE_HAS_CRC;
    header.payload_crc = hash_crc32c(0, frame->payload, frame->length);
  }
  wire_header_encode(&header, frame->header);
  if (journal_count(&sending->journal) == 0) {
    liveness_moved(&link->liveness, lane, now_ns);
    link_watch(link, now_ns);
  }
  policy_sent(link->policy, lane, chunk.length, now_ns);
  journal_append(&sending->journal, chunk);
  link_tail_written(link, lane, now_ns);
  if (journal_is_full(&sending->journal)) {
    link->full |= lane_bit(lane);
  }
  sending->bytes_sent += chunk.length;
  link->writing_data |= lane_bit(lane);
  link->copied |= chunk.length == 0 ? lane_bit(lane) : 0;
}

static void send_next_chunk(struct link *link, unsigned lane, struct link_frame *frame,
                            uint64_t now_ns) {
  bool is_requeued = link->requeue.count > 0;
  struct chunk chunk = is_requeued ? requeue_take(&link->requeue)
                                   : outgoing_cut(&link->outgoing, send_chunk_bytes(link, lane));
  send_chunk(link, lane, chunk, NULL, frame, now_ns);
  repeat_earn(link, chunk.length);
  /* What is sent again is not compressed, so that compressed bytes that the peer cannot read are no
   * endless loop. */
  frame->wants_coding =
      !is_requeued && coding_wants(link, lane, outgoing_of(&link->outgoing, chunk), frame, now_ns);
}

static void send_repeat(struct link *link, const struct repeat_choice *choice,
                        struct link_frame *frame, uint64_t now_ns) {
  struct wire_origin origin;
  struct chunk chunk = repeat_take(link, choice, &origin);
  send_chunk(link, (unsigned)choice->to, chunk, &origin, frame, now_ns);
}

/* ---- the next frame ---- */

int link_take_frame(struct link *link, uint64_t writable, struct link_frame *frame,
                    uint64_t now_ns) {
  if ((writable & link->failover.up & ~link->writing) == 0) {
    return -1;
  }
  struct send_ahead ahead = send_look_ahead(link);
  struct repeat_choice repeat;
  int picked = link_pick_lane(link, &ahead, writable, &repeat);
  if (picked < 0) {
    return -1;
  }
  unsigned lane = (unsigned)picked;
  struct wire_header header;
  frame->memory = NULL;
  frame->remote_buffer = NULL;
  frame->wants_coding = false;
  if (link_next_control(link, &ahead, lane, &header, now_ns)) {
    wire_header_encode(&header, frame->header);
    frame->length = header.length;
    const void *payload =
        header.type == WIRE_ABORT ? (const void *)link->reason : link->lanes[lane].control;
    frame->payload = header.length == 0 ? NULL : payload;
  } else if (repeat.to >= 0) {
    send_repeat(link, &repeat, frame, now_ns);
  } else {
    send_next_chunk(link, lane, frame, now_ns);
  }
  link->writing |= lane_bit(lane);
  return picked;
}

void link_frame_taken(struct link *link, unsigned lane, uint64_t now_ns) {
  if (!link_is_lane_up(link, lane) || (link->writing & lane_bit(lane)) == 0) {
    return;
  }
  link->writing &= ~lane_bit(lane);
  if (link->farewell == FAREWELL_WRITING && link->farewell_lane == lane) {
    link->farewell = FAREWELL_WRITTEN;
  }
  send_frame_written(link, lane, link_clock(link, now_ns));
}
