/* SPDX-License-Identifier: Apache-2.0 */
/* link_step: all that follows from the facts, for the owner of the lanes: orders, frames, completed
 * messages. Of frames, which lane carries the next one, and what it is: control before data, what
 * is most urgent first; of data what is sent again before what is new. */
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
  bool is_allowed = message != NULL && send_has_credit(link, ring->cutting, is_eager);
  bool is_repeat = link->flight.unsent > 0, is_new = is_allowed && !flight_is_full(&link->flight);
  return (struct send_ahead){
    .has_chunk = (is_new || is_repeat) && link->last_try_ns == 0,
    .needs_request = message != NULL && !is_allowed && ring->cutting >= link->taken.requested &&
                     !(is_eager && link->config.eager_slots > 0),
    .left = is_repeat || message == NULL ? UINT64_MAX : message->bytes - message->cut,
  };
}

int link_pick_lane(const struct link *link, const struct send_ahead *ahead, uint64_t writable,
                   struct repeat_choice *repeat) {
  repeat->to = -1;
  uint64_t candidates = writable & link->up & ~link->writing;
  if (candidates == 0) {
    return -1;
  }
  /* Any lane may carry it. */
  bool has_control = link->announce != 0 || link->given.is_due || ahead->needs_request;
  if (link->farewell == FAREWELL_DUE || (link->status == 0 && has_control)) {
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
  if (repeat->to >= 0 || !ahead->has_chunk) {
    return repeat->to;
  }
  /* New chunks avoid lanes that stand still, and one that is kept for repeats, if others can have
   * them. The policy may want to wait for a lane, but not for one of these. */
  uint64_t for_new = link->up & ~link->still;
  if (link->keeps_spare && link->wanted < link->least) {
    unsigned first = policy_first_lanes(&link->config.policy);
    uint64_t wanted = lanes_below(link->wanted > first ? link->wanted : first);
    for_new = (for_new & wanted) != 0 ? for_new & wanted : for_new;
  }
  uint64_t usual = candidates & (for_new != 0 ? for_new : UINT64_MAX);
  int picked = policy_pick(link->policy, usual, ahead->left, link->now_ns);
  uint64_t moving = candidates & ~link->still;
  if (picked < 0 && (moving & ~usual) != 0) {
    picked = policy_pick(link->policy, moving, ahead->left, link->now_ns);
  }
  uint64_t idle = link->still != 0 ? usual & moving : 0;
  for (uint64_t lanes = idle; picked < 0 && lanes != 0; lanes &= lanes - 1) {
    int lane = __builtin_ctzll(lanes);
    picked = link->lanes[lane].in_flight == 0 ? lane : -1;
  }
  return picked;
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
  } else if (link->announce != 0) {
    unsigned announced = (unsigned)__builtin_ctzll(link->announce);
    link->announce &= link->announce - 1;
    header->type = WIRE_CLOSED;
    header->message = announced;
    header->offset = link->lanes[announced].fenced_epoch;
  } else if (link->given.is_due) {
    receive_fill_window(link, lane, header, now_ns);
  } else if (ahead->needs_request) {
    header->type = WIRE_REQUEST;
    header->message = link->outgoing.cutting;
    link->counts.stalls++;
    link->taken.requested = link->outgoing.cutting + 1;
  } else if ((link->pong & lane_bit(lane)) != 0) {
    link->pong &= ~lane_bit(lane);
    header->type = WIRE_PONG;
    header->message = link->lanes[lane].pong_token;
  } else if ((link->ping & lane_bit(lane)) != 0) {
    link->ping &= ~lane_bit(lane);
    header->type = WIRE_PING;
    header->message = ++link->counts.pings_sent;
    liveness_asked(link, lane, now_ns);
    link_watch(link, now_ns);
  } else if (link->farewell == FAREWELL_DUE) {
    link_fill_farewell(link, lane, header);
  } else {
    return false;
  }
  if (header->type >= WIRE_REQUEST && header->type <= WIRE_CLOSED) {
    liveness_told(link, lane, now_ns);
    if (header->type == WIRE_WINDOW) {
      link_tails_outdated(link);
    }
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

static void send_fill_data(struct link *link, unsigned lane, uint64_t number, bool is_new,
                           struct link_frame *frame) {
  struct chunk chunk = flight_at(&link->flight, number)->chunk;
  const struct outgoing *message = outgoing_of(&link->outgoing, chunk);
  uint64_t retired = link->outgoing.retired;
  struct wire_header header = {
    .type = WIRE_DATA,
    .length = chunk.length,
    .number = number,
    /* made whole: no live message is LINK_WINDOW away from retired */
    .message = retired + (uint32_t)(chunk.message - (uint32_t)retired),
    .offset = chunk.offset,
    .total = message->bytes,
  };
  if (!message->is_copied) {
    header.flags |= WIRE_WANTS_ACK;
  }
  frame->length = chunk.length;
  frame->payload = chunk.length > 0 ? message->data + chunk.offset : NULL;
  frame->memory = message->memory;
  /* What was sent before may have landed, and the message be the user's again. */
  frame->remote_buffer =
      chunk.length > 0 && is_new ? send_remote_buffer(link, lane, message, header.message) : NULL;
  frame->offset = chunk.offset;
  if (message->ll != LL_NONE && frame->remote_buffer == NULL) {
    header.flags |= WIRE_IS_LL;
  }
  if (link->config.wants_checksums && chunk.length > 0) {
    header.flags |= WIRE_HAS_CRC;
    header.payload_crc = hash_crc32c(0, frame->payload, frame->length);
  }
  wire_header_encode(&header, frame->header);
}

/* Is the chunk, which is not one that is sent again, to be compressed? It is counted. */
static bool send_wants_coding(struct link *link, unsigned lane, const struct outgoing *message,
                              const struct link_frame *frame) {
  const struct link_config *config = &link->config;
  bool can_be = frame->length >= LINK_CODED_BYTES && frame->length <= config->policy.chunk_bytes &&
                message->ll == LL_NONE && (link->rdma & lane_bit(lane)) == 0;
  if (config->policy.compress == POLICY_COMPRESS_OFF || !can_be) {
    return false;
  }
  bool is_wanted = !link->lanes[lane].is_raw &&
                   (config->policy.compress == POLICY_COMPRESS_ON || policy_compress(link->policy));
  link->counts.coding.untried += is_wanted ? 0 : 1;
  return is_wanted;
}

/* The chunk that was chosen as a repeat, else one that was given back, else a new one. */
static void send_data(struct link *link, unsigned lane, const struct repeat_choice *repeat,
                      struct link_frame *frame, uint64_t now_ns) {
  struct flight *flight = &link->flight;
  bool is_repeat = repeat->to >= 0, is_new = !is_repeat && flight->unsent == 0;
  uint64_t number;
  if (is_new) {
    number = flight_cut(flight, outgoing_cut(&link->outgoing, send_chunk_bytes(link, lane)));
  } else if (is_repeat) {
    number = repeat->number;
    repeat_take(link, repeat);
  } else {
    number = flight_unsent(flight);
  }
  struct chunk chunk = flight_at(flight, number)->chunk;
  send_fill_data(link, lane, number, is_new, frame);
  carry_begins(link, lane, number, now_ns);
  link_tail_written(link, lane, now_ns);
  if (is_new) {
    repeat_earn(link, chunk.length);
    /* What is sent again is not compressed, so that compressed bytes that the peer cannot read are
     * no endless loop. */
    frame->wants_coding = send_wants_coding(link, lane, outgoing_of(&link->outgoing, chunk), frame);
  }
}

/* ---- the next frame ---- */

int link_take_frame(struct link *link, uint64_t writable, struct link_frame *frame,
                    uint64_t now_ns) {
  if ((writable & link->up & ~link->writing) == 0) {
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
  } else {
    send_data(link, lane, &repeat, frame, now_ns);
  }
  link->writing |= lane_bit(lane);
  return picked;
}

void link_frame_taken(struct link *link, unsigned lane, uint64_t now_ns) {
  if (!link_is_lane_up(link, lane) || (link->writing & lane_bit(lane)) == 0) {
    return;
  }
  uint64_t bit = lane_bit(lane);
  now_ns = link_clock(link, now_ns);
  link->writing &= ~bit;
  if (link->farewell == FAREWELL_WRITING && link->farewell_lane == lane) {
    link->farewell = FAREWELL_WRITTEN;
  }
  if (link->lanes[lane].is_writing_data) {
    carry_written(link, lane, now_ns);
  }
}

/* ---- one thing at a time ---- */

bool link_next_order(struct link *link, struct link_order *order, uint64_t now_ns) {
  if (link->still != 0 && link->status == 0 && repeat_move_payload(link, order)) {
    return true;
  }
  /* A failed link opens no lanes, but lanes that read the user's memory are closed all the same. */
  return (link->status == 0 || link->close != 0) && lanes_may_order(link, now_ns) &&
         lanes_next_order(link, order, now_ns);
}

bool link_next_completion(struct link *link, uint64_t *bytes) {
  if (link->is_detached) {
    return false;
  }
  return link->config.role == LINK_SENDER ? outgoing_next_completion(&link->outgoing, bytes)
                                          : incoming_next_completion(&link->incoming, bytes);
}

enum link_step_kind link_step(struct link *link, const struct link_ready *ready, uint64_t now_ns,
                              struct link_step *step) {
  now_ns = link_clock(link, now_ns);
  for (uint64_t lanes = link->writing & ready->taken; lanes != 0; lanes &= lanes - 1) {
    link_frame_taken(link, (unsigned)__builtin_ctzll(lanes), now_ns);
  }
  if (link_next_order(link, &step->order, now_ns)) {
    return LINK_STEP_ORDER;
  }
  int lane = link_take_frame(link, ready->writable, &step->frame, now_ns);
  if (lane >= 0) {
    step->lane = (unsigned)lane;
    return LINK_STEP_WRITE;
  }
  step->deadline_ns = link_next_deadline_ns(link);
  return LINK_STEP_WAIT;
}
