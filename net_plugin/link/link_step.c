/* SPDX-License-Identifier: Apache-2.0 */
/* link_step: all that follows from the facts so far, for the owner of the lanes. */
#include "net_plugin/link/link_state.h"

bool link_next_order(struct link *link, struct link_order *order, uint64_t now_ns) {
  if (link->still != 0 && link->status == 0 && repeat_move_payload(link, order, now_ns)) {
    return true;
  }
  /* A failed link opens no lanes, but lanes that read the user's memory are closed all the same. */
  return (link->status == 0 || link->failover.close != 0) &&
         failover_may_order(&link->failover, now_ns) &&
         failover_next_order(&link->failover, order, now_ns);
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
  step->completed = 0;
  for (uint64_t bytes; link_next_completion(link, &bytes); step->completed++) {
    step->completed_bytes[step->completed] = bytes; /* the window has no more messages */
  }
  step->status = link->status;
  step->is_finished = (link->is_detached || link->status != 0) && link_is_finished(link);
  step->has_last_word = link->status != 0 && link_has_last_word(link);
  step->deadline_ns = link_next_deadline_ns(link);
  return LINK_STEP_WAIT;
}
