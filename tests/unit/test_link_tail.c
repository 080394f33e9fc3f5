/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that were lost with nothing behind them: when a link asks its lanes, and when a PING goes
 * out behind them. */
#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define US 1000ull
#define MS 1000000ull
#define LANE 0u

static struct policy_transport transport;

static int begin(void **state) {
  (void)state;
  timed_begin(1);
  timed_post(64);
  timed_post(8192);
  timed_settle();
  transport =
      (struct policy_transport){ .has_unacked = true, .acked_bytes = 100, .rtt_min_us = 10 };
  return 0;
}

/* A message of which nothing arrives. */
static void post_in_vain(void) {
  timed.black[LINK_SENDER] = 1;
  timed_post(64);
  timed_settle();
}

/* Both sides; the lane of one that wants to know is asked. How often that was. */
static unsigned pass(enum link_role role, uint64_t for_ns) {
  unsigned looks = 0;
  for (uint64_t end_ns = timed.now_ns + for_ns; timed.now_ns < end_ns;) {
    timed_pass(100 * US);
    if ((timed.links[role]->tails_due & lane_bit(LANE)) != 0) {
      assert_true((link_wants_measured(timed.links[role], timed.now_ns) & lane_bit(LANE)) != 0);
      link_lane_measured(timed.links[role], LANE, &transport, timed.now_ns);
      looks++;
    }
  }
  timed_settle();
  return looks;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, timed_end)

TEST(what_was_lost_gets_a_ping_behind_it) {
  post_in_vain();
  assert_int_equal(pass(LINK_SENDER, 200 * US), 0);
  assert_int_equal(pass(LINK_SENDER, 200 * US), 1);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 0);
  assert_int_equal(pass(LINK_SENDER, 300 * US), 1);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 1);
}

TEST(a_lane_that_moves_gets_none) {
  post_in_vain();
  for (unsigned i = 0; i < 40; i++) {
    transport.acked_bytes++;
    pass(LINK_SENDER, 500 * US);
  }
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 0);
}

TEST(far_peers_have_more_time) {
  transport.rtt_min_us = 10000;
  post_in_vain();
  pass(LINK_SENDER, 40 * MS);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 0);
  pass(LINK_SENDER, 2 * MS);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 1);
}

/* PINGs that are answered so late. */
static void ping(unsigned pings, uint64_t late_ns) {
  for (unsigned i = 0; i < pings; i++) {
    struct link_frame frame;
    timed.now_ns += US;
    timed.links[LINK_SENDER]->ping |= lane_bit(LANE);
    assert_true(next_frame(timed.links[LINK_SENDER], LANE, &frame, timed.now_ns));
    link_frame_taken(timed.links[LINK_SENDER], LANE, timed.now_ns);
    timed.is_stopped[LINK_RECEIVER] = true;
    pass(LINK_SENDER, late_ns);
    timed.is_stopped[LINK_RECEIVER] = false;
    timed_deliver(LINK_RECEIVER, LANE, &frame);
    timed_settle();
  }
}

TEST(peers_that_usually_answer_late_have_more_time) {
  transport.has_unacked = false;
  ping(40, 2 * MS);
  transport.has_unacked = true;
  post_in_vain();
  assert_int_equal(pass(LINK_SENDER, 6 * MS), 0);
  assert_int_equal(pass(LINK_SENDER, 4 * MS), 1);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 0);
}

TEST(answers_that_are_seldom_late_change_nothing) {
  transport.has_unacked = false;
  for (unsigned i = 0; i < 20; i++) {
    ping(9, 0);
    ping(1, 200 * MS);
  }
  transport.has_unacked = true;
  post_in_vain();
  assert_int_equal(pass(LINK_SENDER, 400 * US), 1);
}

/* The peer's host has it, and its process is slow. */
TEST(what_has_arrived_is_asked_about_once) {
  timed.is_stopped[LINK_RECEIVER] = true;
  timed_post(64);
  struct link_frame frame;
  assert_true(next_frame(timed.links[LINK_SENDER], LANE, &frame, timed.now_ns));
  link_frame_taken(timed.links[LINK_SENDER], LANE, timed.now_ns);
  transport.has_unacked = false;
  assert_int_equal(pass(LINK_SENDER, 50 * MS), 1);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 0);
}

TEST(what_is_acknowledged_is_not_asked_about) {
  transport.has_unacked = false;
  for (unsigned i = 0; i < 20; i++) {
    timed_post(8192);
    assert_in_range(pass(LINK_SENDER, 10 * MS), 0, 1);
  }
  assert_int_equal(pass(LINK_SENDER, 100 * MS), 0);
  assert_true(timed.links[LINK_SENDER]->tail_ns == LINK_NO_DEADLINE);
}

TEST(a_path_that_is_gone_is_asked_less_and_less) {
  post_in_vain();
  pass(LINK_SENDER, 10 * MS);
  assert_in_range(timed.links[LINK_SENDER]->tail_pings, 5, 8);
  pass(LINK_SENDER, 490 * MS);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 11);
}

/* Its peer acknowledges all 5 ms, though a round trip has taken 10 us. */
static uint64_t pings_before_a_queue(bool is_lossy) {
  post_in_vain();
  for (unsigned i = 0; i < 200; i++) {
    pass(LINK_SENDER, 5 * MS);
    transport.acked_bytes++;
    transport.retransmits += is_lossy;
  }
  return timed.links[LINK_SENDER]->tail_pings;
}

TEST(pings_in_vain_become_rare) {
  assert_in_range(pings_before_a_queue(false), 3, 12);
}

TEST(pings_that_are_of_use_do_not) {
  assert_in_range(pings_before_a_queue(true), 200, 1000);
}

/* The user waits for credit that was lost on the way. */
TEST(a_receiver_does_the_same) {
  timed.black[LINK_RECEIVER] = 1;
  timed_post(8192);
  pass(LINK_RECEIVER, 3 * MS);
  assert_in_range(timed.links[LINK_RECEIVER]->tail_pings, 1, 6);
}

/* Of a frame a part is there, and the rest does not come. PONGs of the receiver in so long. */
static unsigned wait_for_the_rest(uint64_t for_ns) {
  struct wire_header header;
  struct link_frame frame;
  unsigned pongs = 0;
  timed.black[LINK_SENDER] = 1;
  timed_post(8192);
  timed_carry(LINK_RECEIVER);
  assert_true(next_frame(timed.links[LINK_SENDER], LANE, &frame, timed.now_ns));
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.type, WIRE_DATA);
  struct link *receiver = timed.links[LINK_RECEIVER];
  assert_int_equal(link_frame_received(receiver, LANE, &header, timed.now_ns), 0);
  link_bytes_arrived(receiver, LANE, timed.now_ns);
  for (uint64_t end_ns = timed.now_ns + for_ns; timed.now_ns < end_ns;) {
    timed.now_ns += 100 * US;
    link_time_passed(receiver, timed.now_ns);
    while (next_frame(receiver, LANE, &frame, timed.now_ns)) {
      assert_int_equal(wire_header_decode(frame.header, &header), 0);
      pongs += header.type == WIRE_PONG;
      link_frame_taken(receiver, LANE, timed.now_ns);
    }
  }
  return pongs;
}

TEST(a_part_of_a_frame_is_acknowledged_again) {
  assert_int_equal(wait_for_the_rest(3 * MS), 1);
}

TEST(but_not_for_ever) {
  assert_int_equal(wait_for_the_rest(2000 * MS), LINK_PARTIAL_PONGS);
  assert_true(timed.links[LINK_RECEIVER]->partial_ns == LINK_NO_DEADLINE);
}

/* Nor what comes on another lane makes it last. */
TEST(not_even_beside_a_lane_that_moves) {
  wait_for_the_rest(2000 * MS);
  struct link *receiver = timed.links[LINK_RECEIVER];
  for (unsigned i = 0; i < 400; i++) {
    timed.now_ns += 1 * MS;
    link_partial_arrived(receiver, 1, timed.now_ns);
    link_time_passed(receiver, timed.now_ns);
    assert_int_equal(receiver->pong, 0);
  }
}

TEST(a_whole_frame_is_not) {
  wait_for_the_rest(0);
  assert_int_equal(timed.links[LINK_RECEIVER]->partial, 1);
  assert_int_equal(link_frame_completed(timed.links[LINK_RECEIVER], LANE, timed.now_ns), 0);
  assert_true(timed.links[LINK_RECEIVER]->partial_ns == LINK_NO_DEADLINE);
  timed_pass(10 * MS);
  assert_int_equal(timed.received_frames[WIRE_PONG], 0);
}

/* All of it was lost, but the peer reads: it is not slow. */
TEST(a_lane_whose_peer_reads_stands_still) {
  post_in_vain();
  timed_post(8192);
  timed_settle();
  for (unsigned i = 0; i < 2; i++) {
    pass(LINK_SENDER, 30 * MS);
    assert_int_equal(timed.links[LINK_SENDER]->still, i);
    struct wire_header pong = { .type = WIRE_PONG };
    assert_int_equal(link_frame_received(timed.links[LINK_SENDER], LANE, &pong, timed.now_ns), 0);
    assert_int_equal(link_frame_completed(timed.links[LINK_SENDER], LANE, timed.now_ns), 0);
  }
}

/* Its first chunk takes longer than the time that a lane of unknown rate gets. */
TEST(a_lone_lane_that_moves_is_not_cut) {
  timed_begin(1);
  timed.can_dial = false;
  post_in_vain();
  for (unsigned i = 0; i < 20; i++) {
    transport.acked_bytes++;
    pass(LINK_SENDER, 500 * MS);
  }
  assert_int_equal(timed.links[LINK_SENDER]->lanes[LANE].stalls_cut, 0);
}

TEST(a_lane_that_counts_nothing_is_left_alone) {
  post_in_vain();
  timed_pass(700 * US);
  assert_int_equal(timed.links[LINK_SENDER]->tails_due, lane_bit(LANE));
  link_lane_measured(timed.links[LINK_SENDER], LANE, NULL, timed.now_ns);
  timed_pass(50 * MS);
  assert_int_equal(timed.links[LINK_SENDER]->tails_due, 0);
  assert_int_equal(timed.links[LINK_SENDER]->tail_pings, 0);
}

UNIT_MAIN(NULL, NULL)
