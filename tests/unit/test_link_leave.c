/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver that leaves. */
#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

/* The peer's eager messages wait in all slots. */
UNIT_TEST_WITH(who_leaves_says_what_has_landed, NULL, timed_end) {
  enum { EAGER_SLOTS = 8 };
  struct wire_header header = { .type = WIRE_PING };
  struct link_frame frame;
  timed_begin(1);
  struct link *receiver = timed.links[LINK_RECEIVER];
  for (unsigned i = 0; i < EAGER_SLOTS; i++) {
    assert_int_equal(link_send_posted(timed.links[LINK_SENDER], timed.out, 64, NULL, timed.now_ns),
                     0);
  }
  timed_settle();
  link_user_detached(receiver, timed.now_ns);
  while (header.type != WIRE_BYE) {
    assert_true(next_frame(receiver, 0, &frame, timed.now_ns));
    link_frame_taken(receiver, 0, timed.now_ns);
    assert_int_equal(wire_header_decode(frame.header, &header), 0);
  }
  assert_int_equal(header.offset, EAGER_SLOTS);
}

UNIT_MAIN(NULL, NULL)
