/* SPDX-License-Identifier: Apache-2.0 */
/* Links with a direct lane: which messages wait until their place is known, who asks for it, and
 * when more lanes are opened. */
#include <string.h>

#include "net_plugin/policy/limits.h"
#include "tests/lib/direct.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

static void expect_nothing(unsigned lane) {
  struct link_frame frame;
  assert_false(next_frame(direct_ends[LINK_SENDER], lane, &frame, direct_now_ns));
  link_check(direct_ends[LINK_SENDER]);
}

static void expect_data(unsigned lane, bool has_target) {
  struct link_frame frame;
  assert_true(next_frame(direct_ends[LINK_SENDER], lane, &frame, direct_now_ns));
  assert_int_equal(frame.header[1], WIRE_DATA);
  assert_int_equal(frame.remote_buffer != NULL, has_target);
  link_frame_written(direct_ends[LINK_SENDER], lane, direct_now_ns);
  link_check(direct_ends[LINK_SENDER]);
}

static void expect_request(unsigned lane) {
  struct link_frame frame;
  direct_find_frame(LINK_SENDER, lane, WIRE_REQUEST, &frame);
  expect_nothing(lane);
}

static void lose_lane(unsigned lane, uint32_t epoch) {
  link_lane_lost(direct_ends[LINK_RECEIVER], lane, epoch, direct_now_ns);
  link_lane_lost(direct_ends[LINK_SENDER], lane, epoch, direct_now_ns);
  link_check(direct_ends[LINK_SENDER]);
}

/* The first message asks for its place; from then on the sender is told of receives at once. */
static void what_could_be_placed_finds_a_grant(void **state) {
  (void)state;
  struct link_frame frame;
  direct_post_both(&direct_target);
  direct_find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.remote_buffer);
  assert_int_equal(direct_deliver(LINK_SENDER, 0, &frame), 0);
  direct_receive(&direct_target);
  direct_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
  direct_send(DIRECT_BYTES);
  expect_data(0, true);
}

static void a_receive_that_waits_already_is_told_when_asked_for(void **state) {
  (void)state;
  struct link_frame frame;
  direct_receive(&direct_target);
  assert_false(next_frame(direct_ends[LINK_RECEIVER], 0, &frame, direct_now_ns));
  direct_send(DIRECT_BYTES);
  direct_pass(LINK_SENDER, 0, WIRE_REQUEST);
  direct_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
  expect_data(0, true);
}

static void what_is_not_placed_does_not_wait(void **state) {
  (void)state;
  direct_send(LINK_PLACE_BYTES);
  expect_data(0, false);
  memset(direct_sent, 1, DIRECT_BYTES / 128 * 128); /* LL128 */
  direct_send(DIRECT_BYTES / 128 * 128);
  expect_data(0, false);
}

static void what_waits_for_a_target_goes_without_when_direct_lanes_are_lost(void **state) {
  (void)state;
  direct_lane_up(1, 1, false);
  direct_send(DIRECT_BYTES);
  expect_request(0);
  expect_nothing(1);
  lose_lane(0, 1);
  struct link_frame frame;
  direct_find_frame(LINK_SENDER, 1, WIRE_DATA, &frame);
  assert_null(frame.remote_buffer);
}

static void a_direct_lane_that_comes_back_is_waited_for_again(void **state) {
  (void)state;
  direct_lane_up(1, 1, false);
  direct_send(DIRECT_BYTES);
  expect_request(0); /* lost with its lane */
  lose_lane(0, 1);
  direct_lane_up(0, 2, true);
  expect_request(0);
  expect_nothing(1);
}

static void a_request_that_was_not_written_is_made_again(void **state) {
  (void)state;
  direct_lane_up(1, 1, false);
  direct_send(DIRECT_BYTES);
  lose_lane(0, 1);
  direct_lane_up(0, 2, true);
  expect_request(0);
}

/* NCCL sends what fills less than its buffers as a message with all the bytes and one with none. */
static void empty_messages_between_change_nothing(void **state) {
  (void)state;
  direct_post_both(&direct_target);
  direct_pass(LINK_SENDER, 0, WIRE_DATA);
  for (int i = 0; i < 2; i++) {
    direct_receive(&direct_target);
    direct_pass(LINK_RECEIVER, 0, WIRE_WINDOW);
    direct_send(0);
    direct_pass(LINK_SENDER, 0, WIRE_DATA);
  }
}

static void words_with_checksums_do_not_wait(void **state) {
  (void)state;
  direct_fill_words();
  direct_send(DIRECT_BYTES / 16 * 16);
  expect_data(0, false);
}

/* ---- more lanes ---- */

static bool sender_opens_a_lane(size_t bytes) {
  static const uint8_t large[(512u << 10) + 1] = { 1 };
  struct link_order order;
  assert_true(bytes <= sizeof large);
  assert_int_equal(link_send_posted(direct_ends[LINK_SENDER], large, bytes, large, direct_now_ns),
                   0);
  return link_next_order(direct_ends[LINK_SENDER], &order, direct_now_ns) &&
         order.kind == LINK_ORDER_OPEN;
}

static void one_direct_lane_does_up_to_a_whole_piece(void **state) {
  (void)state;
  assert_false(sender_opens_a_lane(DIRECT_BYTES));
  assert_false(sender_opens_a_lane(512u << 10));
  assert_true(sender_opens_a_lane((512u << 10) + 1));
}

static void direct_lanes_on_other_paths_are_worth_it_sooner(void **state) {
  (void)state;
  assert_false(sender_opens_a_lane(ADAPTIVE_LANES_BYTES - 1));
  assert_true(sender_opens_a_lane(ADAPTIVE_LANES_BYTES));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_could_be_placed_finds_a_grant, direct_set_up_large,
                                    direct_tear_down),
    cmocka_unit_test_setup_teardown(a_receive_that_waits_already_is_told_when_asked_for,
                                    direct_set_up_large, direct_tear_down),
    cmocka_unit_test_setup_teardown(what_is_not_placed_does_not_wait, direct_set_up_large,
                                    direct_tear_down),
    cmocka_unit_test_setup_teardown(what_waits_for_a_target_goes_without_when_direct_lanes_are_lost,
                                    direct_set_up_large, direct_tear_down),
    cmocka_unit_test_setup_teardown(a_direct_lane_that_comes_back_is_waited_for_again,
                                    direct_set_up_large, direct_tear_down),
    cmocka_unit_test_setup_teardown(a_request_that_was_not_written_is_made_again,
                                    direct_set_up_large, direct_tear_down),
    cmocka_unit_test_setup_teardown(empty_messages_between_change_nothing, direct_set_up_large,
                                    direct_tear_down),
    cmocka_unit_test_setup_teardown(words_with_checksums_do_not_wait, direct_set_up_large_checked,
                                    direct_tear_down),
    cmocka_unit_test_setup_teardown(one_direct_lane_does_up_to_a_whole_piece, direct_set_up,
                                    direct_tear_down),
    cmocka_unit_test_setup_teardown(direct_lanes_on_other_paths_are_worth_it_sooner,
                                    direct_set_up_paths, direct_tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
