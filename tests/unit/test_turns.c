/* SPDX-License-Identifier: Apache-2.0 */
/* When turns are taken, and when they are given up. */
#include "net_plugin/policy/stripe.h"

#include "tests/lib/unit.h"

#define SECOND 1000000000ull

static void arrive(struct turns *turns, bool is_late, unsigned count, uint64_t now_ns) {
  for (unsigned i = 0; i < count; i++) {
    turns_arrived(turns, is_late, now_ns);
  }
}

UNIT_TEST(late_messages_take_turns) {
  struct turns turns;
  turns_init(&turns);
  for (unsigned i = 0; i < 10; i++) { /* one in time halves their number */
    arrive(&turns, true, TURNS_MESSAGES / 2, SECOND);
    arrive(&turns, false, 1, SECOND);
    assert_int_equal(turns.state, TURNS_NONE);
  }
  arrive(&turns, false, 9, SECOND);
  arrive(&turns, true, TURNS_MESSAGES - 1, SECOND);
  assert_int_equal(turns.state, TURNS_NONE);
  arrive(&turns, true, 1, SECOND);
  assert_int_equal(turns.state, TURNS_TRIED);
}

/* Lanes do queue where messages are in time by turns; it is looked at again after a while. */
UNIT_TEST(turns_that_help_are_taken_again) {
  struct turns turns;
  turns_init(&turns);
  uint64_t now_ns = 0;
  for (unsigned i = 0; i < 3; i++) {
    unsigned late = TURNS_MESSAGES * TURNS_LATE_PERCENT / 100;
    arrive(&turns, true, TURNS_MESSAGES + late, now_ns);
    arrive(&turns, false, TURNS_MESSAGES - late - 1, now_ns);
    assert_int_equal(turns.state, TURNS_TRIED);
    arrive(&turns, false, 1, now_ns);
    assert_int_equal(turns.state, TURNS_HELP);
    arrive(&turns, true, 10 * TURNS_MESSAGES, now_ns);
    turns_sent(&turns, now_ns + TURNS_NS - 1);
    assert_int_equal(turns.state, TURNS_HELP);
    turns_sent(&turns, now_ns += TURNS_NS);
    assert_int_equal(turns.state, TURNS_NONE);
  }
}

/* A thread that does not run is late on every lane. */
UNIT_TEST(turns_in_vain_are_given_up) {
  struct turns turns;
  turns_init(&turns);
  uint64_t now_ns = 0, pause_ns = TURNS_NS;
  for (unsigned i = 0; i < 10; i++) {
    unsigned late = TURNS_MESSAGES * TURNS_LATE_PERCENT / 100 + 1;
    arrive(&turns, true, TURNS_MESSAGES + late, now_ns);
    assert_int_equal(turns.state, TURNS_TRIED);
    turns_sent(&turns, now_ns);
    arrive(&turns, false, TURNS_MESSAGES - late, now_ns);
    assert_int_equal(turns.state, TURNS_NONE);
    arrive(&turns, true, 10 * TURNS_MESSAGES, now_ns + pause_ns - 1);
    assert_int_equal(turns.state, TURNS_NONE);
    arrive(&turns, false, 9, now_ns += pause_ns);
    pause_ns *= pause_ns < TURNS_PAUSE_MAX_NS ? 2 : 1;
  }
  arrive(&turns, true, TURNS_MESSAGES, now_ns);
  arrive(&turns, false, TURNS_MESSAGES, now_ns); /* these help, and the pause is the first */
  turns_sent(&turns, now_ns += TURNS_NS);
  arrive(&turns, true, 2 * TURNS_MESSAGES, now_ns);
  assert_int_equal(turns.state, TURNS_NONE);
  arrive(&turns, true, TURNS_MESSAGES, now_ns + TURNS_NS - 1);
  assert_int_equal(turns.state, TURNS_NONE);
  arrive(&turns, true, 1, now_ns + TURNS_NS);
  assert_int_equal(turns.state, TURNS_TRIED);
}

UNIT_MAIN(NULL, NULL)
