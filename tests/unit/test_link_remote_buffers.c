/* SPDX-License-Identifier: Apache-2.0 */
/* Remote buffers and RDMA lanes: where a NIC may write by itself, who is told, and when lanes that
 * could still read or write memory are closed. Frames are handed over by hand, one at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/rdma_ends.h"
#include "tests/lib/unit.h"

#define MS 1000000ull

static void place(struct link_frame *frame) {
  assert_non_null(frame->remote_buffer);
  assert_true(frame->remote_buffer->address == rdma_ends_target.address);
  memcpy(rdma_ends_received + frame->offset, frame->payload, frame->length);
  wire_header_place(frame->header);
}

#define TEST(name) RDMA_ENDS_TEST(name, &rdma_ends_small)

TEST(a_message_is_placed) {
  uint64_t completion;
  rdma_ends_post_both(&rdma_ends_target);
  for (uint64_t at = 0; at < RDMA_ENDS_BYTES;) {
    struct link_frame frame;
    rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
    assert_true(frame.offset == at);
    assert_ptr_equal(frame.memory, rdma_ends_sent);
    assert_int_equal(frame.remote_buffer->keys[0], 11);
    assert_int_equal(frame.remote_buffer->keys[1], 22);
    place(&frame);
    at += frame.length;
    assert_int_equal(rdma_ends_deliver(LINK_SENDER, 0, &frame), 0);
  }
  assert_true(link_next_completion(rdma_ends[LINK_RECEIVER], &completion));
  assert_int_equal(completion, RDMA_ENDS_BYTES);
  assert_memory_equal(rdma_ends_sent, rdma_ends_received, RDMA_ENDS_BYTES);
}

/* Pieces that take no buffer need not be small. Without a remote buffer they are cut as ever. */
TEST(placed_pieces_are_large) {
  struct link_frame frame;
  rdma_ends_lane_up(1, 1, true);
  rdma_ends_post_both(&rdma_ends_target);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_int_equal(frame.length, RDMA_ENDS_BYTES);
}

TEST(pieces_without_target_are_chunks) {
  struct link_frame frame;
  rdma_ends_post_both(NULL);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_int_equal(frame.length, 8192);
}

/* One message there, which takes a while, and its acknowledgement back. Was it a copy that was
 * sent? */
static bool sends_copy(uint64_t took_ns) {
  struct link_frame frame;
  uint64_t completion;
  rdma_ends_send(RDMA_ENDS_BYTES);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  bool is_copy = !frame.memory;
  assert_int_equal(link_next_completion(rdma_ends[LINK_SENDER], &completion), is_copy);
  place(&frame);
  rdma_ends_now_ns += took_ns;
  assert_int_equal(rdma_ends_deliver(LINK_SENDER, 0, &frame), 0);
  if (!is_copy) {
    rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
    assert_true(link_next_completion(rdma_ends[LINK_SENDER], &completion));
  }
  return is_copy;
}

RDMA_ENDS_TEST(messages_that_take_long_are_copied, &rdma_ends_large) {
  for (int i = 0; i < 8; i++) {
    rdma_ends_receive(&rdma_ends_target);
  }
  rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
  assert_false(sends_copy(1 * MS));
  assert_false(sends_copy(1 * MS));
  assert_false(sends_copy(50 * MS));
  assert_true(sends_copy(50 * MS));
}

/* Credit is there for both. */
RDMA_ENDS_TEST(larger_messages_are_read_where_they_are, &rdma_ends_large) {
  struct link_frame frame;
  rdma_ends_receive(&rdma_ends_target);
  rdma_ends_receive(&rdma_ends_target);
  rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
  rdma_ends_send(LINK_COPY_BYTES);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_null(frame.memory);
  rdma_ends_send(LINK_COPY_BYTES + 1);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_ptr_equal(frame.memory, rdma_ends_sent);
}

static void expect_no_target(void) {
  struct link_frame frame;
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_null(frame.remote_buffer);
}

RDMA_ENDS_TEST(a_receive_without_target_gets_payloads, &rdma_ends_large, &rdma_ends_small) {
  rdma_ends_post_both(NULL);
  expect_no_target();
}

RDMA_ENDS_TEST(a_target_without_room_is_not_used, &rdma_ends_large, &rdma_ends_small) {
  struct wire_remote_buffer small = rdma_ends_target;
  small.bytes = RDMA_ENDS_BYTES - 1;
  rdma_ends_post_both(&small);
  expect_no_target();
}

TEST(lines_that_are_polled_are_not_placed) {
  memset(rdma_ends_sent, 1, RDMA_ENDS_BYTES / 128 * 128); /* LL128's flag at the end of each line */
  rdma_ends_post_bytes(RDMA_ENDS_BYTES / 128 * 128, &rdma_ends_target);
  expect_no_target();
}

TEST(words_that_are_polled_are_placed) {
  rdma_ends_fill_words();
  rdma_ends_post_bytes(RDMA_ENDS_BYTES / 16 * 16, &rdma_ends_target);
  struct link_frame frame;
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.remote_buffer);
  assert_true(frame.length <= WIRE_MAX_LL_BYTES);
  struct wire_header header;
  wire_header_decode(frame.header, &header);
  assert_false(header.flags & WIRE_IS_LL);
}

RDMA_ENDS_TEST(words_with_checksums_are_not_placed, &rdma_ends_small_checked) {
  rdma_ends_fill_words();
  rdma_ends_post_bytes(RDMA_ENDS_BYTES / 16 * 16, &rdma_ends_target);
  expect_no_target();
}

TEST(only_rdma_lanes_get_targets) {
  struct link_frame frame;
  rdma_ends_lane_up(1, 1, false);
  rdma_ends_post_both(&rdma_ends_target);
  rdma_ends_find_frame(LINK_SENDER, 1, WIRE_DATA, &frame);
  assert_null(frame.remote_buffer);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.remote_buffer);
}

TEST(a_copy_is_in_the_links_memory) {
  struct link_frame frame;
  rdma_ends_send(8);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_null(frame.memory);
  assert_true(frame.payload > (const void *)rdma_ends[LINK_SENDER]);
}

/* ---- told again ---- */

TEST(targets_are_told_again_when_a_lane_is_lost) {
  struct link_frame frame;
  struct wire_header header;
  rdma_ends_lane_up(1, 1, true);
  struct wire_remote_buffer other = rdma_ends_target;
  for (unsigned i = 0; i < 3; i++) {
    other.address = 0x1000 * (i + 1);
    rdma_ends_receive(&other);
  }
  rdma_ends_send(RDMA_ENDS_BYTES);
  rdma_ends_pass(LINK_SENDER, 0, WIRE_REQUEST);
  rdma_ends_find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame); /* lost with its lane */
  link_lane_lost(rdma_ends[LINK_RECEIVER], 0, 1, rdma_ends_now_ns);
  link_lane_lost(rdma_ends[LINK_SENDER], 0, 1, rdma_ends_now_ns);
  rdma_ends_find_frame(LINK_RECEIVER, 1, WIRE_WINDOW, &frame);
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.total, 3);
  assert_int_equal(header.length, 3 * wire_remote_buffer_bytes(2));
  assert_int_equal(rdma_ends_deliver(LINK_RECEIVER, 1, &frame), 0);
  rdma_ends_find_frame(LINK_SENDER, 1, WIRE_DATA, &frame);
  assert_true(frame.remote_buffer && frame.remote_buffer->address == 0x1000);
}

TEST(what_has_landed_is_not_told_again) {
  struct link_frame frame;
  struct wire_header header;
  a_message_is_placed(state);
  rdma_ends_receive(&rdma_ends_target);
  rdma_ends_lane_up(1, 1, true); /* a lane that comes tells all */
  rdma_ends_find_frame(LINK_RECEIVER, 1, WIRE_WINDOW, &frame);
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.message, 2);
  assert_int_equal(header.total, 1);
}

/* ---- frames that must not be ---- */

static void expect_refused(uint64_t message, unsigned lane) {
  struct wire_header header = {
    .type = WIRE_DATA, .flags = WIRE_IS_PLACED, .length = 100, .message = message, .total = 100
  };
  assert_int_equal(link_frame_received(rdma_ends[LINK_RECEIVER], lane, &header, rdma_ends_now_ns),
                   -EPROTO);
}

TEST(nothing_is_placed_without_a_grant) {
  expect_refused(0, 0);
}

TEST(nothing_is_placed_through_other_lanes) {
  rdma_ends_lane_up(1, 1, false);
  rdma_ends_receive(&rdma_ends_target);
  expect_refused(0, 1);
}

TEST(windows_that_do_not_add_up_are_refused) {
  static const struct {
    uint64_t message, total;
    uint32_t length;
  } windows[] = {
    { 3, 1, 16 },                              /* less than a remote buffer */
    { 3, 1, 24 + 8 },                          /* half an acknowledgement */
    { 3, 1, 24 + 16 * (RDMA_ENDS_LANES + 1) }, /* more than there are lanes */
    { 3, 0, 24 },                              /* remote buffers that are not counted */
  };
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    rdma_ends_tear_down(NULL);
    rdma_ends_begin(&rdma_ends_small);
    struct wire_header header = {
      .type = WIRE_WINDOW,
      .length = windows[i].length,
      .message = windows[i].message,
      .total = windows[i].total,
    };
    assert_int_equal(link_frame_received(rdma_ends[LINK_SENDER], 0, &header, rdma_ends_now_ns),
                     -EPROTO);
  }
}

/* Fuzzing found that the remote buffers of this one were read without end. */
TEST(targets_end_at_the_largest_number) {
  struct link *sender = rdma_ends[LINK_SENDER];
  struct wire_header header = {
    .type = WIRE_WINDOW, .length = 2 * 24, .message = UINT64_MAX, .total = 2
  };
  assert_int_equal(link_frame_received(sender, 0, &header, rdma_ends_now_ns), 0);
  memset(link_receive_buffer(sender, 0), 1, header.length);
  assert_int_equal(link_frame_completed(sender, 0, rdma_ends_now_ns), 0);
  link_check(sender);
}

TEST(a_link_without_targets_is_told_none) {
  rdma_ends_tear_down(state);
  rdma_ends_make(LINK_SENDER, 0);
  rdma_ends_make(LINK_RECEIVER, 0);
  rdma_ends_lane_up(0, 1, false);
  struct link_frame frame;
  struct wire_header header;
  assert_int_equal(link_send_posted(rdma_ends[LINK_SENDER], rdma_ends_sent, RDMA_ENDS_BYTES, NULL,
                                    rdma_ends_now_ns),
                   0);
  rdma_ends_pass(LINK_SENDER, 0, WIRE_REQUEST);
  rdma_ends_receive(&rdma_ends_target);
  rdma_ends_find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame);
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.total, 0);
  assert_int_equal(header.length, 0);
  header = (struct wire_header){ .type = WIRE_WINDOW, .length = 24, .message = 1, .total = 1 };
  assert_int_equal(link_frame_received(rdma_ends[LINK_SENDER], 0, &header, rdma_ends_now_ns),
                   -EPROTO);
}

/* ---- the end ---- */

static bool is_ordered_closed(enum link_role role) {
  struct link_order order;
  while (link_next_order(rdma_ends[role], &order, rdma_ends_now_ns)) {
    if (order.kind == LINK_ORDER_CLOSE && order.lane == 0 && order.epoch == 1) {
      return true;
    }
  }
  return false;
}

TEST(a_receiver_who_leaves_early_stops_writers) {
  rdma_ends_post_both(&rdma_ends_target);
  link_user_detached(rdma_ends[LINK_RECEIVER], rdma_ends_now_ns);
  assert_true(is_ordered_closed(LINK_RECEIVER));
}

TEST(a_receiver_who_has_all_keeps_its_lanes) {
  a_message_is_placed(state);
  link_user_detached(rdma_ends[LINK_RECEIVER], rdma_ends_now_ns);
  assert_false(is_ordered_closed(LINK_RECEIVER));
}

TEST(a_sender_who_leaves_early_stops_readers) {
  struct link_frame frame;
  rdma_ends_post_both(&rdma_ends_target);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame); /* written, not acknowledged */
  link_user_detached(rdma_ends[LINK_SENDER], rdma_ends_now_ns);
  assert_true(is_ordered_closed(LINK_SENDER));
}

TEST(a_sender_whose_copies_are_in_flight_keeps_its_lanes) {
  struct link_frame frame;
  rdma_ends_send(8);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  link_user_detached(rdma_ends[LINK_SENDER], rdma_ends_now_ns);
  assert_false(is_ordered_closed(LINK_SENDER));
}

UNIT_MAIN(NULL, NULL)
