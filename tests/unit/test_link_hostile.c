/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that no honest peer would send, which are told. Any frames at random:
 * tests/fuzz/fuzz_link.c; what honest peers send over bad lanes: tests/sim. */
#include <errno.h>
#include <string.h>

#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define TEST(name) UNIT_TEST_WITH(name, NULL, timed_end)

static struct link *open_receiver(void) {
  timed_begin(2);
  return timed.links[LINK_RECEIVER];
}

TEST(a_message_that_is_too_large_fails_the_link) {
  struct link *link = open_receiver();
  struct wire_header data = { .type = WIRE_DATA, .length = 101, .total = 101 };
  assert_int_equal(link_receive_posted(link, timed.in, 100, NULL, timed.now_ns), 0);
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), -EMSGSIZE);
  assert_int_equal(link_status(link), -EMSGSIZE);
  assert_int_equal(link_receive_posted(link, timed.in, 1, NULL, timed.now_ns), -EMSGSIZE);
}

TEST(a_wrong_checksum_loses_the_lane) {
  struct link *link = open_receiver();
  struct wire_header data = { WIRE_DATA, WIRE_HAS_CRC, 8, 0, 0, 8, 0xBAD, 0, 0 };
  struct link_lane_view view;
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), 0);
  memset(link_receive_buffer(link, 0), 1, 8);
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), -EBADMSG);
  link_view_lane(link, 0, &view);
  assert_int_equal(view.state, LINK_LANE_LOST);
  assert_null(link_receive_buffer(link, 0));
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), -ESTALE);
  link_check(link);
}

/* A kernel may be reading there. */
TEST(a_wrong_polled_frame_never_shows) {
  struct link *link = open_receiver();
  const uint8_t untouched[128] = { 0 };
  struct wire_header data = { WIRE_DATA, WIRE_HAS_CRC | WIRE_IS_LL, 128, 0, 0, 128, 0xBAD, 0, 0 };
  memset(timed.in, 0, TIMED_BULK);
  assert_int_equal(link_receive_posted(link, timed.in, TIMED_BULK, NULL, timed.now_ns), 0);
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), 0);
  link_check(link);
  memset(link_receive_buffer(link, 0), 1, 128);
  assert_memory_equal(timed.in, untouched, sizeof untouched); /* nor before all of it is there */
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), -EBADMSG);
  assert_memory_equal(timed.in, untouched, sizeof untouched);
  link_check(link);
}

/* CLOSED came over another lane, before the handshake of the epoch that it ends. */
TEST(a_reconnect_that_was_closed_before_is_refused) {
  struct link *link = open_receiver();
  struct wire_header closed = { .type = WIRE_CLOSED, .message = 1, .offset = 2 };
  assert_int_equal(link_frame_received(link, 0, &closed, timed.now_ns), 0);
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), 0);
  assert_false(link_lane_fence(link, 1, 2, timed.now_ns));
  assert_true(link_lane_fence(link, 1, 3, timed.now_ns));
  assert_false(link_lane_fence(link, 0, 1, timed.now_ns)); /* it is up with that one */
}

static int carry(struct link *link, unsigned lane, const struct wire_header *header) {
  int result = link_frame_received(link, lane, header, timed.now_ns);
  return result ? result : link_frame_completed(link, lane, timed.now_ns);
}

TEST(a_number_lands_once_and_none_that_is_too_far_ahead) {
  struct link *link = open_receiver();
  struct wire_header data = { .type = WIRE_DATA, .length = 8, .total = 8 };
  for (int i = 0; i < 2; i++) {
    assert_int_equal(link_receive_posted(link, timed.in, 8, NULL, timed.now_ns), 0);
  }
  assert_int_equal(carry(link, 1, &data), 0);
  assert_int_equal(carry(link, 0, &data), 0);
  struct link_view view = timed_view(LINK_RECEIVER);
  assert_int_equal(view.counts.duplicates, 1);
  assert_int_equal(view.completed, 1);
  data.message = 1;
  data.number = 1 + LINK_FLIGHT;
  assert_int_equal(carry(link, 1, &data), -EPROTO);
  data.number = LINK_FLIGHT;
  assert_int_equal(carry(link, 0, &data), 0);
  view = timed_view(LINK_RECEIVER);
  assert_int_equal(view.counts.duplicates, 1);
  assert_int_equal(view.completed, 2);
  link_check(link);
}
