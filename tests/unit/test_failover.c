/* SPDX-License-Identifier: Apache-2.0 */
/* The life of lanes: epochs, orders, backoff, and old facts that change nothing. */
#include "net_plugin/link/failover.h"

#include <string.h>

#include "tests/lib/unit.h"

#define SECOND 1000000000ull

static struct failover failover;
static struct link_lane lane_records[WIRE_MAX_LANES];

static void begin(enum link_role role, unsigned lanes) {
  static struct link_config config;
  config = (struct link_config){
    .role = role, .policy.lanes = lanes, .timeout_ns = 5 * SECOND, .seed = 7
  };
  memset(lane_records, 0, sizeof lane_records);
  failover_init(&failover, lane_records, &config, 0);
}

static void expect_open(uint64_t now_ns, unsigned lane, uint32_t epoch) {
  struct link_order order;
  assert_true(failover_next_order(&failover, &order, now_ns));
  assert_int_equal(order.kind, LINK_ORDER_OPEN);
  assert_int_equal(order.lane, lane);
  assert_int_equal(order.epoch, epoch);
  failover_check(&failover);
}

static void expect_close(unsigned lane, uint32_t epoch) {
  struct link_order order;
  assert_true(failover_next_order(&failover, &order, 0));
  assert_int_equal(order.kind, LINK_ORDER_CLOSE);
  assert_int_equal(order.lane, lane);
  assert_int_equal(order.epoch, epoch);
}

static void expect_nothing(uint64_t now_ns) {
  struct link_order order;
  assert_false(failover_next_order(&failover, &order, now_ns));
  failover_check(&failover);
}

UNIT_TEST(lanes_open_when_they_are_wanted) {
  begin(LINK_SENDER, 3);
  assert_true(failover_come_up(&failover, 0, 1, 0));
  expect_nothing(0);
  failover_grow(&failover);
  expect_open(0, 1, 1);
  expect_open(0, 2, 1);
  expect_nothing(SECOND);
  assert_true(failover_come_up(&failover, 1, 1, 0));
  assert_true(failover.up == 3 && failover.connecting == 4);
}

UNIT_TEST(a_lost_lane_reconnects_with_the_next_epoch) {
  begin(LINK_SENDER, 2);
  failover_come_up(&failover, 0, 1, 0);
  failover_grow(&failover);
  expect_open(0, 1, 1);
  failover_come_up(&failover, 1, 1, 0);
  assert_true(failover_lose(&failover, 1, 1, FAILOVER_BROKEN, 100));
  assert_false(failover_lose(&failover, 1, 1, FAILOVER_BROKEN, 100));
  expect_nothing(100);
  uint64_t retry_ns = failover_next_deadline_ns(&failover);
  assert_in_range(retry_ns, 100 + FAILOVER_BACKOFF_MIN_NS / 2, 100 + FAILOVER_BACKOFF_MIN_NS);
  expect_open(retry_ns, 1, 2);
}

UNIT_TEST(backoff_doubles_up_to_its_limit) {
  begin(LINK_SENDER, 2);
  failover_come_up(&failover, 0, 1, 0);
  failover_grow(&failover);
  uint64_t now_ns = 0, expected_ns = FAILOVER_BACKOFF_MIN_NS;
  for (uint32_t epoch = 1; epoch < 20; epoch++) {
    expect_open(now_ns, 1, epoch);
    assert_false(
        failover_lose(&failover, 1, epoch, FAILOVER_BROKEN, now_ns)); /* it never came up */
    uint64_t delay_ns = failover_next_deadline_ns(&failover) - now_ns;
    assert_in_range(delay_ns, expected_ns / 2, expected_ns);
    now_ns += delay_ns;
    expected_ns =
        2 * expected_ns < FAILOVER_BACKOFF_MAX_NS ? 2 * expected_ns : FAILOVER_BACKOFF_MAX_NS;
  }
  expect_open(now_ns, 1, 20);
  assert_true(failover_come_up(&failover, 1, 20, now_ns));
  assert_int_equal(failover.lanes[1].losses, 0);
  failover_proved(&failover, 1); /* an acknowledgement: the next loss begins anew */
  failover_lose(&failover, 1, 20, FAILOVER_BROKEN, now_ns);
  assert_true(failover_next_deadline_ns(&failover) <= now_ns + FAILOVER_BACKOFF_MIN_NS);
}

UNIT_TEST(old_facts_change_nothing) {
  begin(LINK_SENDER, 1);
  failover_come_up(&failover, 0, 1, 0);
  failover_lose(&failover, 0, 1, FAILOVER_BROKEN, 0);
  expect_open(SECOND, 0, 2);
  assert_false(failover_lose(&failover, 0, 1, FAILOVER_BROKEN, SECOND));
  assert_false(failover_come_up(&failover, 0, 1, SECOND)); /* an old dial's answer */
  assert_true(failover.lost == 1 || failover.connecting == 1);
  expect_close(0, 1);
}

UNIT_TEST(a_fence_ends_epochs_that_are_not_known_yet) {
  begin(LINK_RECEIVER, 2);
  assert_false(failover_fence(&failover, 1, 3, 0));
  assert_false(failover_come_up(&failover, 1, 3, 0));
  expect_close(1, 3);
  assert_true(failover_come_up(&failover, 1, 4, 0));
  assert_false(failover_fence(&failover, 1, 3, 0)); /* late */
  assert_true(failover_fence(&failover, 1, 4, 0));
  expect_close(1, 4);
  failover_check(&failover);
}

UNIT_TEST(a_dial_that_the_peer_fenced_is_given_up) {
  begin(LINK_SENDER, 1);
  failover_come_up(&failover, 0, 1, 0);
  failover_lose(&failover, 0, 1, FAILOVER_BROKEN, 0);
  expect_open(SECOND, 0, 2);
  failover_fence(&failover, 0, 2, SECOND); /* the peer had it up and lost it before us */
  assert_false(failover_come_up(&failover, 0, 2, SECOND));
  expect_close(0, 2);
  expect_open(3 * SECOND, 0, 3);
}

UNIT_TEST(the_last_lane_lost_opens_all_others) {
  begin(LINK_SENDER, 3);
  failover_come_up(&failover, 0, 1, 0);
  failover_lose(&failover, 0, 1, FAILOVER_BROKEN, 0);
  expect_open(0, 1, 1);
  expect_open(0, 2, 1);
}

UNIT_TEST(without_a_lane_time_runs_out) {
  begin(LINK_RECEIVER, 1);
  assert_true(failover_next_deadline_ns(&failover) == 5 * SECOND);
  failover_come_up(&failover, 0, 1, 0);
  assert_true(failover_next_deadline_ns(&failover) == LINK_NO_DEADLINE);
  assert_false(failover_is_timed_out(&failover, 100 * SECOND));
  failover_lose(&failover, 0, 1, FAILOVER_BROKEN, 100 * SECOND);
  assert_false(failover_is_timed_out(&failover, 105 * SECOND - 1));
  assert_true(failover_is_timed_out(&failover, 105 * SECOND));
}

UNIT_TEST(lost_lanes_are_announced_again) {
  begin(LINK_SENDER, 3);
  failover.unsettled |= lane_bit(1);
  failover_announce_again(&failover);
  assert_true(failover.announce == 2);
  failover.announce = 0; /* told, on a lane that is lost now */
  failover.unsettled |= lane_bit(2);
  failover_announce_again(&failover);
  assert_true(failover.announce == 6);
  failover_settle(&failover, 1);
  assert_true(failover.announce == 4 && failover.unsettled == 4);
}

UNIT_TEST(a_lane_that_stands_still_again_waits_longer) {
  begin(LINK_SENDER, 2);
  failover_come_up(&failover, 0, 1, 0);
  failover_grow(&failover);
  expect_open(0, 1, 1);
  uint64_t now_ns = 0, expected_ns = FAILOVER_BACKOFF_MIN_NS;
  for (uint32_t epoch = 1; epoch < 12; epoch++) {
    assert_true(failover_come_up(&failover, 1, epoch, now_ns));
    assert_true(failover_cut(&failover, 1, LINK_CLOSE_STALLED, now_ns));
    uint64_t delay_ns = failover_next_deadline_ns(&failover) - now_ns;
    assert_in_range(delay_ns, expected_ns / 2, expected_ns);
    struct link_order order;
    assert_true(failover_next_order(&failover, &order, now_ns));
    assert_true(order.kind == LINK_ORDER_CLOSE && order.reason == LINK_CLOSE_STALLED);
    now_ns += delay_ns;
    expect_open(now_ns, 1, epoch + 1);
    expected_ns = epoch == 1                                        ? FAILOVER_STALL_BACKOFF_NS
                  : 2 * expected_ns < FAILOVER_STALL_BACKOFF_MAX_NS ? 2 * expected_ns
                                                                    : FAILOVER_STALL_BACKOFF_MAX_NS;
  }
  assert_true(failover_come_up(&failover, 1, 12, now_ns));
  failover_proved(&failover, 1);
  failover_cut(&failover, 1, LINK_CLOSE_STALLED, now_ns);
  assert_true(failover_next_deadline_ns(&failover) <= now_ns + FAILOVER_BACKOFF_MIN_NS);
}

UNIT_TEST(without_any_lane_nobody_waits_long) {
  begin(LINK_SENDER, 2);
  failover_come_up(&failover, 0, 1, 0);
  failover_grow(&failover);
  for (uint32_t epoch = 1; epoch < 5; epoch++) {
    expect_open(epoch * 64 * SECOND, 1, epoch);
    failover_come_up(&failover, 1, epoch, epoch * 64 * SECOND);
    failover_cut(&failover, 1, LINK_CLOSE_STALLED, epoch * 64 * SECOND);
    expect_close(1, epoch);
  }
  uint64_t now_ns = 4 * 64 * SECOND;
  assert_true(failover_next_deadline_ns(&failover) > now_ns + SECOND);
  failover_lose(&failover, 0, 1, FAILOVER_BROKEN, now_ns);
  assert_true(failover_next_deadline_ns(&failover) <= now_ns + FAILOVER_BACKOFF_MIN_NS);
  expect_open(now_ns + SECOND, 0, 2);
  expect_open(now_ns + SECOND, 1, 5);
}

UNIT_TEST(time_in_which_we_did_not_run_is_no_time_without_lanes) {
  begin(LINK_RECEIVER, 1);
  failover_resumed(&failover, 4 * SECOND, 6 * SECOND);
  assert_true(failover_next_deadline_ns(&failover) == 9 * SECOND);
  failover_resumed(&failover, SECOND, 60 * SECOND); /* half of it is left in any case */
  assert_true(failover_next_deadline_ns(&failover) == 62 * SECOND + SECOND / 2);
}

UNIT_TEST(what_is_lost_after_a_gap_gets_no_more_time_for_it) {
  begin(LINK_RECEIVER, 1);
  assert_true(failover_come_up(&failover, 0, 1, SECOND));
  assert_true(failover_lose(&failover, 0, 1, FAILOVER_BROKEN, 6 * SECOND));
  failover_resumed(&failover, 4 * SECOND, 6 * SECOND);
  assert_true(failover_next_deadline_ns(&failover) == 11 * SECOND);
}

UNIT_MAIN(NULL, NULL)
