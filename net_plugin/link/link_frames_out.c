/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that leave a link: which lane carries the next one, and what it is: control before data,
 * what is most urgent first. */
#include <string.h>

#include "net_plugin/link/link_state.h"

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

int link_pick_lane(const struct link *link, const struct send_ahead *ahead, uint64_t writable) {
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
  int to = link->still != 0 ? repeat_choose(link, candidates).to : -1;
  return to >= 0 || !ahead->has_chunk ? to : link_pick_for_chunk(link, candidates, ahead->left);
}

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

int link_take_frame(struct link *link, uint64_t writable, struct link_frame *frame,
                    uint64_t now_ns) {
  if ((writable & link->failover.up & ~link->writing) == 0) {
    return -1;
  }
  struct send_ahead ahead = send_look_ahead(link);
  int picked = link_pick_lane(link, &ahead, writable);
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
    struct repeat_choice choice = { .to = -1 };
    if (link->still != 0) {
      choice = repeat_choose(link, lane_bit(lane));
    }
    if (choice.to >= 0) {
      send_repeat(link, &choice, frame, now_ns);
    } else {
      send_next_chunk(link, lane, frame, now_ns);
    }
  }
  link->writing |= lane_bit(lane);
  return picked;
}

void link_frame_written(struct link *link, unsigned lane, uint64_t now_ns) {
  if (!link_is_lane_up(link, lane) || (link->writing & lane_bit(lane)) == 0) {
    return;
  }
  link->writing &= ~lane_bit(lane);
  if (link->farewell == FAREWELL_WRITING && link->farewell_lane == lane) {
    link->farewell = FAREWELL_WRITTEN;
  }
  send_frame_written(link, lane, link_clock(link, now_ns));
}
