/* SPDX-License-Identifier: Apache-2.0 */
/* link_parts: the parts of link_step one by one, for tests that look at one of them. */
#ifndef TESTS_LIB_LINK_PARTS_H
#define TESTS_LIB_LINK_PARTS_H

#include "net_plugin/link/link_state.h"

/* The lane that link_step would write on, or -1. */
static inline int pick_lane(const struct link *link, uint64_t writable) {
  struct send_ahead ahead = send_look_ahead(link);
  struct repeat_choice repeat;
  return link_pick_lane(link, &ahead, writable, &repeat);
}

/* Takes the next frame for this lane; false: none. */
static inline bool next_frame(struct link *link, unsigned lane, struct link_frame *frame,
                              uint64_t now_ns) {
  return link_take_frame(link, 1ull << lane, frame, link_clock(link, now_ns)) >= 0;
}

#endif
