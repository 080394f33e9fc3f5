/* SPDX-License-Identifier: Apache-2.0 */
/* Who may send what, and when the receiver speaks. */
#include "net_plugin/link/credit.h"

#include "tests/lib/unit.h"

static struct credit_given given;

static int set_up(void **state) {
  (void)state;
  credit_init(&given, 8);
  return 0;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

UNIT_TEST(grants_and_eager_slots) {
  struct credit_taken taken = { .granted = 5, .eager_slots = 3 };
  assert_true(credit_allows(&taken, 4, false));
  assert_false(credit_allows(&taken, 5, false));
  assert_true(credit_allows(&taken, 5, true));
  assert_true(credit_allows(&taken, 7, true));
  assert_false(credit_allows(&taken, 8, true));
}

UNIT_TEST(one_request_per_message) {
  struct credit_taken taken = { .granted = 5, .eager_slots = 3 };
  assert_true(credit_must_request(&taken, 5, false));
  credit_request(&taken, 5);
  assert_false(credit_must_request(&taken, 5, false));
  assert_true(credit_must_request(&taken, 6, false));
  assert_false(credit_must_request(&taken, 8, true)); /* the receiver tells by itself */
  taken.eager_slots = 0;
  assert_true(credit_must_request(&taken, 8, true)); /* it does not, without slots */
}

UNIT_TEST(a_request_that_may_be_lost_is_repeated) {
  struct credit_taken taken = { .granted = 5, .eager_slots = 3 };
  assert_true(credit_must_request(&taken, 5, false));
  taken.requested = 0; /* its lane was lost */
  assert_true(credit_must_request(&taken, 5, false));
}

TEST(small_messages_are_advertised_in_batches) {
  for (uint64_t granted = 1; granted <= 3; granted++) {
    credit_granted(&given, granted, granted - 1);
    assert_false(given.is_due);
  }
  credit_granted(&given, 4, 3);
  assert_true(given.is_due);
  credit_advertised(&given, 4);
  assert_false(given.is_due);
  credit_granted(&given, 5, 4);
  assert_false(given.is_due);
}

TEST(a_credit_request_is_answered) {
  credit_requested(&given, 0, 0);
  assert_false(given.is_due); /* nothing to tell yet */
  credit_granted(&given, 1, 0);
  assert_true(given.is_due);
  credit_advertised(&given, 1);
  credit_requested(&given, 0, 1); /* late: answered already */
  assert_false(given.is_due);
  credit_granted(&given, 2, 1);
  assert_false(given.is_due);
  credit_requested(&given, 1, 2);
  assert_true(given.is_due);
}

TEST(bulk_is_advertised_before_it_runs_out) {
  given.is_bulk = true;
  given.advertised = 4;
  credit_granted(&given, 5, 1); /* three are left, one is new */
  assert_false(given.is_due);
  credit_granted(&given, 6, 2); /* two are left, two are new */
  assert_true(given.is_due);
}

TEST(landed_bulk_is_acknowledged_at_once) {
  credit_frame_arrived(&given, 1000, 1, true, false, 5 + CREDIT_DELAY_NS);
  assert_false(given.is_due);
  assert_true(given.deadline_ns == 5 + CREDIT_DELAY_NS);
  credit_frame_arrived(&given, 1000, 2, true, true, 6 + CREDIT_DELAY_NS);
  assert_true(given.is_due);
}

TEST(frames_do_not_pile_up) {
  for (unsigned i = 1; i < CREDIT_FRAMES; i++) {
    credit_frame_arrived(&given, 8, 1, false, true, i + CREDIT_DELAY_NS);
    assert_false(given.is_due);
  }
  assert_true(given.deadline_ns == 1 + CREDIT_DELAY_NS); /* of the first */
  credit_frame_arrived(&given, 8, 1, false, true, 99 + CREDIT_DELAY_NS);
  assert_true(given.is_due);
  credit_advertised(&given, 0);
  credit_frame_arrived(&given, 8, CREDIT_LANE_FRAMES, true, false, 99 + CREDIT_DELAY_NS);
  assert_true(given.is_due);
  credit_advertised(&given, 0);
  credit_frame_arrived(&given, CREDIT_BYTES, 1, true, false, 99 + CREDIT_DELAY_NS);
  assert_true(given.is_due);
}

TEST(a_passed_deadline_is_due_once) {
  credit_frame_arrived(&given, 8, 1, false, true, 10 + CREDIT_DELAY_NS);
  credit_time_passed(&given, 9 + CREDIT_DELAY_NS);
  assert_false(given.is_due);
  credit_time_passed(&given, 10 + CREDIT_DELAY_NS);
  assert_true(given.is_due);
  assert_true(given.deadline_ns == LINK_NO_DEADLINE);
}

/* NCCL posts several receives at the beginning of a collective: all of them are advertised
 * together. */
TEST(an_opening_is_advertised_soon) {
  credit_opening(&given, 10);
  credit_granted(&given, 1, 0);
  credit_granted(&given, 2, 0);
  assert_false(given.is_due);
  assert_true(credit_next_ns(&given) == 10 + CREDIT_OPENING_NS);
  credit_time_passed(&given, 9 + CREDIT_OPENING_NS);
  assert_false(given.is_due);
  credit_time_passed(&given, 10 + CREDIT_OPENING_NS);
  assert_true(given.is_due);
  assert_true(credit_next_ns(&given) == LINK_NO_DEADLINE);
  credit_advertised(&given, 2);
  /* Advertised already, since the sender asked; what came after that is advertised all the same. */
  credit_opening(&given, 20);
  credit_requested(&given, 2, 2);
  credit_granted(&given, 3, 2);
  assert_true(given.is_due);
  credit_advertised(&given, 3);
  credit_granted(&given, 4, 2);
  assert_false(given.is_due);
  credit_time_passed(&given, 20 + CREDIT_OPENING_NS);
  assert_true(given.is_due);
  credit_advertised(&given, 4);
  credit_opening(&given, 30);
  credit_time_passed(&given, 30 + CREDIT_OPENING_NS);
  assert_false(given.is_due); /* nothing to tell */
}

UNIT_MAIN(NULL, NULL)
