/* SPDX-License-Identifier: Apache-2.0 */
/* Links with an RDMA lane: which messages wait until their place is known, who asks for it, and
 * when more lanes are opened. */
#include <string.h>

#include "net_plugin/policy/limits.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/rdma_ends.h"
#include "tests/lib/unit.h"

static void expect_nothing(unsigned lane) {
  struct link_frame frame;
  assert_false(next_frame(rdma_ends[LINK_SENDER], lane, &frame, rdma_ends_now_ns));
  link_check(rdma_ends[LINK_SENDER]);
}

static void expect_data(unsigned lane, bool has_target) {
  struct link_frame frame;
  assert_true(next_frame(rdma_ends[LINK_SENDER], lane, &frame, rdma_ends_now_ns));
  assert_int_equal(frame.header[1], WIRE_DATA);
  assert_int_equal(frame.remote_buffer != NULL, has_target);
  link_frame_taken(rdma_ends[LINK_SENDER], lane, rdma_ends_now_ns);
  link_check(rdma_ends[LINK_SENDER]);
}

static void expect_request(unsigned lane) {
  struct link_frame frame;
  rdma_ends_find_frame(LINK_SENDER, lane, WIRE_REQUEST, &frame);
  expect_nothing(lane);
}

static void lose_lane(unsigned lane, uint32_t epoch) {
  link_lane_lost(rdma_ends[LINK_RECEIVER], lane, epoch, rdma_ends_now_ns);
  link_lane_lost(rdma_ends[LINK_SENDER], lane, epoch, rdma_ends_now_ns);
  link_check(rdma_ends[LINK_SENDER]);
}

/* The first message asks for its place; from then on the sender is told of receives at once. */
RDMA_ENDS_TEST(what_could_be_placed_finds_a_grant, &rdma_ends_large) {
  struct link_frame frame;
  rdma_ends_post_both(&rdma_ends_target);
  rdma_ends_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.remote_buffer);
  assert_int_equal(rdma_ends_deliver(LINK_SENDER, 0, &frame), 0);
  rdma_ends_receive(&rdma_ends_target);
  rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
  rdma_ends_send(RDMA_ENDS_BYTES);
  expect_data(0, true);
}

RDMA_ENDS_TEST(a_receive_that_waits_already_is_told_when_asked_for, &rdma_ends_large) {
  struct link_frame frame;
  rdma_ends_receive(&rdma_ends_target);
  assert_false(next_frame(rdma_ends[LINK_RECEIVER], 0, &frame, rdma_ends_now_ns));
  rdma_ends_send(RDMA_ENDS_BYTES);
  rdma_ends_pass(LINK_SENDER, 0, WIRE_REQUEST);
  rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
  expect_data(0, true);
}

RDMA_ENDS_TEST(what_is_not_placed_does_not_wait, &rdma_ends_large) {
  rdma_ends_send(LINK_PLACE_BYTES);
  expect_data(0, false);
  memset(rdma_ends_sent, 1, RDMA_ENDS_BYTES / 128 * 128); /* LL128 */
  rdma_ends_send(RDMA_ENDS_BYTES / 128 * 128);
  expect_data(0, false);
}

RDMA_ENDS_TEST(what_waits_for_a_target_goes_without_when_rdma_lanes_are_lost, &rdma_ends_large) {
  rdma_ends_lane_up(1, 1, false);
  rdma_ends_send(RDMA_ENDS_BYTES);
  expect_request(0);
  expect_nothing(1);
  lose_lane(0, 1);
  struct link_frame frame;
  rdma_ends_find_frame(LINK_SENDER, 1, WIRE_DATA, &frame);
  assert_null(frame.remote_buffer);
}

RDMA_ENDS_TEST(an_rdma_lane_that_comes_back_is_waited_for_again, &rdma_ends_large) {
  rdma_ends_lane_up(1, 1, false);
  rdma_ends_send(RDMA_ENDS_BYTES);
  expect_request(0); /* lost with its lane */
  lose_lane(0, 1);
  rdma_ends_lane_up(0, 2, true);
  expect_request(0);
  expect_nothing(1);
}

RDMA_ENDS_TEST(a_request_that_was_not_written_is_made_again, &rdma_ends_large) {
  rdma_ends_lane_up(1, 1, false);
  rdma_ends_send(RDMA_ENDS_BYTES);
  lose_lane(0, 1);
  rdma_ends_lane_up(0, 2, true);
  expect_request(0);
}

/* NCCL sends what fills less than its buffers as a message with all the bytes and one with none. */
RDMA_ENDS_TEST(empty_messages_between_change_nothing, &rdma_ends_large) {
  rdma_ends_post_both(&rdma_ends_target);
  rdma_ends_pass(LINK_SENDER, 0, WIRE_DATA);
  for (int i = 0; i < 2; i++) {
    rdma_ends_receive(&rdma_ends_target);
    rdma_ends_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
    rdma_ends_send(0);
    rdma_ends_pass(LINK_SENDER, 0, WIRE_DATA);
  }
}

RDMA_ENDS_TEST(words_with_checksums_do_not_wait, &rdma_ends_large_checked) {
  rdma_ends_fill_words();
  rdma_ends_send(RDMA_ENDS_BYTES / 16 * 16);
  expect_data(0, false);
}

/* ---- more lanes ---- */

static bool sender_opens_a_lane(size_t bytes) {
  static const uint8_t large[(512u << 10) + 1] = { 1 };
  struct link_order order;
  assert_true(bytes <= sizeof large);
  assert_int_equal(link_send_posted(rdma_ends[LINK_SENDER], large, bytes, large, rdma_ends_now_ns),
                   0);
  return link_next_order(rdma_ends[LINK_SENDER], &order, rdma_ends_now_ns) &&
         order.kind == LINK_ORDER_OPEN;
}

RDMA_ENDS_TEST(one_rdma_lane_does_up_to_a_whole_piece, &rdma_ends_small) {
  assert_false(sender_opens_a_lane(RDMA_ENDS_BYTES));
  assert_false(sender_opens_a_lane(512u << 10));
  assert_true(sender_opens_a_lane((512u << 10) + 1));
}

RDMA_ENDS_TEST(rdma_lanes_on_other_paths_are_worth_it_sooner, &rdma_ends_two_paths) {
  assert_false(sender_opens_a_lane(ADAPTIVE_LANES_BYTES - 1));
  assert_true(sender_opens_a_lane(ADAPTIVE_LANES_BYTES));
}

UNIT_MAIN(NULL, NULL)
