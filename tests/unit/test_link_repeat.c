/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane holds that stands still is sent again on another lane, and lands once. */
#include <string.h>

#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define US 1000ull

static struct policy_transport transport;

static int begin(void **state) {
  (void)state;
  timed_begin(2);
  transport = (struct policy_transport){
    .has_unacked = true, .acked_bytes = 100, .rtt_min_us = 10, .is_repairing = true
  };
  return 0;
}

static struct link *sender(void) {
  return timed.links[LINK_SENDER];
}

/* The lane does not move, for so many looks. */
static void look(enum link_role role, unsigned lane, unsigned looks) {
  for (unsigned tries = 0; looks > 0 && tries < 1000; tries++) {
    timed_pass(100 * US);
    if ((timed.links[role]->tails_due & lane_bit(lane)) != 0) {
      link_lane_measured(timed.links[role], lane, &transport, timed.now_ns);
      looks--;
    }
  }
  timed_settle();
}

/* The only lane that has anything in flight. */
static unsigned lane_in_flight(void) {
  for (unsigned lane = 0; lane < TIMED_LANES; lane++) {
    if (journal_count(&sender()->lanes[lane].journal) > 0) {
      return lane;
    }
  }
  fail_msg("nothing is in flight");
  return 0;
}

static struct wire_header write_one(unsigned lane, struct link_frame *frame) {
  struct wire_header header;
  assert_true(next_frame(sender(), lane, frame, timed.now_ns));
  assert_int_equal(wire_header_decode(frame->header, &header), 0);
  return header;
}

static void arrive(unsigned lane, const struct wire_header *header, const void *payload) {
  struct link *link = timed.links[LINK_RECEIVER];
  assert_int_equal(link_frame_received(link, lane, header, timed.now_ns), 0);
  link_check(link);
  memcpy(link_receive_buffer(link, lane), payload, header->length);
  assert_int_equal(link_frame_completed(link, lane, timed.now_ns), 0);
  link_check(link);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, timed_end)

TEST(a_message_does_not_wait_for_a_lane_that_stands_still) {
  timed.black[LINK_SENDER] = 1;
  for (unsigned i = 0; i < 2; i++) {
    timed_post(8192);
  }
  timed_settle();
  look(LINK_SENDER, 0, 2);
  timed_pass(2000 * US);
  assert_int_equal(timed.completed[LINK_RECEIVER], 2);
  assert_int_equal(timed.completed[LINK_SENDER], 2);
  assert_memory_equal(timed.in, timed.out, 8192);
  assert_true(timed_view(LINK_SENDER).repeats > 0);
  assert_int_equal(timed_view(LINK_SENDER).losses, 0);
}

TEST(it_opens_a_second_lane) {
  timed_begin(1);
  timed.black[LINK_SENDER] = 1;
  timed_post(64);
  timed_settle();
  sender()->failover.wanted = 1;
  look(LINK_SENDER, 0, 2);
  timed_pass(1000 * US);
  assert_int_equal(timed.completed[LINK_RECEIVER], 1);
  assert_true(failover_goal(&sender()->failover) >= 3);
}

TEST(what_comes_late_is_dropped) {
  struct link_frame first, second;
  timed_post(64);
  struct wire_header late = write_one(0, &first);
  uint8_t payload[64];
  memcpy(payload, first.payload, sizeof payload);
  link_frame_taken(sender(), 0, timed.now_ns);
  link_stands_still(sender(), 0);
  struct wire_header again = write_one(1, &second);
  while (again.type != WIRE_DATA) {
    link_frame_taken(sender(), 1, timed.now_ns);
    again = write_one(1, &second);
  }
  assert_int_equal(again.flags & WIRE_IS_REPEAT, WIRE_IS_REPEAT);
  assert_int_equal(again.origin.lane, 0);
  assert_false(next_frame(sender(), 2, &first, timed.now_ns)); /* at most once */
  arrive(1, &again, second.payload);
  link_frame_taken(sender(), 1, timed.now_ns);
  uint64_t bytes;
  assert_true(link_next_completion(timed.links[LINK_RECEIVER], &bytes));
  memset(timed.in, 0, sizeof timed.in); /* it is the user's again */
  timed_settle();
  timed_pass(3000 * US);
  assert_int_equal(timed_view(LINK_SENDER).repeats_saved_ns, 0);
  arrive(0, &late, payload);
  assert_int_equal(timed.in[1], 0);
  assert_int_equal(timed_view(LINK_RECEIVER).duplicates, 1);
  timed_settle();
  timed_pass(2000 * US);
  assert_int_equal(journal_count(&sender()->lanes[0].journal), 0);
  assert_int_equal(sender()->repeats.count, 0);
  assert_in_range(timed_view(LINK_SENDER).repeats_saved_ns, 2900 * US, 5100 * US);
}

/* The header of the first copy and half of its bytes are there when the second one comes. */
static void half_of_it_is_there_already(unsigned completes_first) {
  struct link *receiver = timed.links[LINK_RECEIVER];
  struct link_frame frames[2];
  timed_post(64);
  struct wire_header headers[2];
  headers[0] = write_one(0, &frames[0]);
  uint8_t payload[64];
  memcpy(payload, frames[0].payload, sizeof payload);
  link_frame_taken(sender(), 0, timed.now_ns);
  link_stands_still(sender(), 0);
  do {
    headers[1] = write_one(1, &frames[1]);
    link_frame_taken(sender(), 1, timed.now_ns);
  } while (headers[1].type != WIRE_DATA);
  for (unsigned lane = 0; lane < 2; lane++) {
    assert_int_equal(link_frame_received(receiver, lane, &headers[lane], timed.now_ns), 0);
    memcpy(link_receive_buffer(receiver, lane), payload, 32);
    link_check(receiver);
  }
  unsigned other = !completes_first;
  memcpy((uint8_t *)link_receive_buffer(receiver, completes_first) + 32, payload + 32, 32);
  assert_int_equal(link_frame_completed(receiver, completes_first, timed.now_ns), 0);
  link_check(receiver);
  uint64_t bytes;
  assert_true(link_next_completion(receiver, &bytes));
  assert_memory_equal(timed.in, timed.out, 64);
  memset(timed.in, 0, sizeof timed.in);
  memcpy((uint8_t *)link_receive_buffer(receiver, other) + 32, payload + 32, 32);
  assert_int_equal(link_frame_completed(receiver, other, timed.now_ns), 0);
  link_check(receiver);
  for (unsigned i = 0; i < 64; i++) {
    assert_int_equal(timed.in[i], 0);
  }
  timed_pass(2000 * US);
  assert_int_equal(sender()->repeats.count, 0);
}

TEST(the_repeat_lands_first) {
  half_of_it_is_there_already(1);
}

TEST(the_origin_lands_first) {
  half_of_it_is_there_already(0);
}

/* Lane 0 begins to write a chunk of a message that is not copied. */
static void begin_to_write(struct link_frame *held) {
  struct link *receiver = timed.links[LINK_RECEIVER];
  sender()->outgoing.copies_bytes = 4095; /* too few for a copy */
  timed_post(4096);
  struct wire_header header = write_one(0, held);
  while (header.type != WIRE_DATA) { /* it asks for credit */
    link_frame_taken(sender(), 0, timed.now_ns);
    assert_int_equal(link_frame_received(receiver, 0, &header, timed.now_ns), 0);
    assert_int_equal(link_frame_completed(receiver, 0, timed.now_ns), 0);
    timed_carry(LINK_RECEIVER);
    header = write_one(0, held);
  }
}

/* Lane 0 takes a part of its frame and stands still, and the peer has the bytes from lane 1. */
static void be_held_by_half_a_frame(struct link_frame *held) {
  begin_to_write(held);
  link_stands_still(sender(), 0);
  timed_settle();
  timed_pass(2000 * US);
  assert_int_equal(timed.completed[LINK_RECEIVER], 1);
  assert_memory_equal(timed.in, timed.out, 4096);
}

TEST(a_frame_that_is_being_written_holds_up_nothing) {
  struct link_frame held;
  be_held_by_half_a_frame(&held);
  assert_int_equal(timed.completed[LINK_SENDER], 1);
  assert_true(timed.moved[0] != NULL && timed.moved[0] != held.payload);
  assert_memory_equal(timed.moved[0], timed.out, 4096);
  link_frame_taken(sender(), 0, timed.now_ns);
  link_check(sender());
  struct wire_header header;
  wire_header_decode(held.header, &header);
  arrive(0, &header, timed.moved[0]);
  timed_pass(2000 * US);
  assert_int_equal(sender()->repeats.count, 0);
  assert_int_equal(journal_count(&sender()->lanes[0].journal), 0);
  assert_int_equal(timed_view(LINK_RECEIVER).duplicates, 1);
}

TEST(a_user_may_leave_it_behind) {
  struct link_frame held;
  be_held_by_half_a_frame(&held);
  link_user_detached(sender(), timed.now_ns);
  assert_true((sender()->failover.up & 1) != 0);
  link_check(sender());
}

TEST(without_memory_it_is_waited_for) {
  timed.memory.refused = 1;
  struct link_frame held;
  be_held_by_half_a_frame(&held);
  assert_int_equal(timed.completed[LINK_SENDER], 0);
  assert_null(timed.moved[0]);
  link_frame_taken(sender(), 0, timed.now_ns);
  timed_settle();
  assert_int_equal(timed.completed[LINK_SENDER], 1);
}

/* Until it moves again: its owner reads the payload on. */
TEST(a_lane_that_moves_keeps_its_payload) {
  struct link_frame held, second;
  begin_to_write(&held);
  link_stands_still(sender(), 0);
  struct wire_header again = write_one(1, &second);
  while (again.type != WIRE_DATA) {
    link_frame_taken(sender(), 1, timed.now_ns);
    again = write_one(1, &second);
  }
  link_frame_taken(sender(), 1, timed.now_ns);
  link_moves(sender(), 0);
  arrive(1, &again, second.payload);
  timed_pass(2000 * US);
  assert_null(timed.moved[0]);
  assert_int_equal(timed.completed[LINK_SENDER], 0);
  link_frame_taken(sender(), 0, timed.now_ns);
  timed_settle();
  assert_int_equal(timed.completed[LINK_SENDER], 1);
}

TEST(both_lanes_may_be_lost) {
  timed.black[LINK_SENDER] = 7;
  timed_post(8192);
  timed_pass(100 * US);
  look(LINK_SENDER, lane_in_flight(), 2);
  assert_true(timed_view(LINK_SENDER).repeats > 0);
  for (unsigned lane = 0; lane < 2; lane++) {
    link_lane_lost(sender(), lane, 1, timed.now_ns);
    link_lane_lost(timed.links[LINK_RECEIVER], lane, 1, timed.now_ns);
    link_check(sender());
  }
  timed_pass(1000000 * US);
  assert_int_equal(timed.completed[LINK_SENDER], 1);
  assert_memory_equal(timed.in, timed.out, 8192);
}

TEST(repeats_are_bounded) {
  sender()->repeats.budget = 0;
  timed_post(64);
  struct link_frame frame;
  write_one(0, &frame);
  link_frame_taken(sender(), 0, timed.now_ns);
  struct journal *journal = &sender()->lanes[0].journal;
  assert_int_equal(journal_count(journal), 1);
  link_stands_still(sender(), 0);
  assert_true(repeat_choose(sender(), TIMED_ALL).to >= 0); /* a small one */
  journal->chunks[0].length = 8192;
  assert_true(repeat_choose(sender(), TIMED_ALL).to < 0);
  repeat_earn(sender(), 32 * 8192);
  assert_true(repeat_choose(sender(), TIMED_ALL).to >= 0);
  journal->chunks[0].length = 64;
}

/* The user waits for what a WINDOW says, and that was lost. */
TEST(acknowledgements_are_told_again) {
  timed.black[LINK_RECEIVER] = 1;
  for (unsigned i = 0; i < 4; i++) {
    timed_post(8192);
  }
  timed_settle();
  look(LINK_RECEIVER, 0, 2);
  timed_pass(2000 * US);
  assert_int_equal(timed.completed[LINK_SENDER], 4);
}

UNIT_MAIN(NULL, NULL)
