/* SPDX-License-Identifier: Apache-2.0 */
/* When a silent peer counts as stopped, and when as dead. What a link makes of it: test_link_time.
 */
#include "net_plugin/link/liveness.h"

#include <string.h>

#include "tests/lib/unit.h"

#define SECOND 1000000000ull
#define TIMEOUT (10 * SECOND)
#define BEGIN (100 * SECOND) /* the user begins to wait, and nothing is heard from then on */

static struct liveness liveness;
static struct link_lane lanes[WIRE_MAX_LANES];

static void begin(uint64_t stopped_timeout_ns) {
  memset(lanes, 0, sizeof lanes);
  liveness_init(&liveness, lanes, TIMEOUT, stopped_timeout_ns, BEGIN);
}

/* Asks when it is due, as a link does. */
static void pass_until(uint64_t end_ns) {
  for (uint64_t at_ns = liveness_next_ns(&liveness);
       at_ns <= end_ns && !liveness_is_dead(&liveness, at_ns);
       at_ns = liveness_next_ns(&liveness)) {
    liveness_ask(&liveness, 1, 0, at_ns);
  }
}

UNIT_TEST(without_an_answer_silence_is_death) {
  begin(300 * SECOND);
  pass_until(BEGIN + TIMEOUT - 1);
  assert_true(liveness_is_in_doubt(&liveness, BEGIN + TIMEOUT - 1));
  assert_false(liveness_is_dead(&liveness, BEGIN + TIMEOUT - 1));
  assert_true(liveness_is_dead(&liveness, BEGIN + TIMEOUT));
}

UNIT_TEST(answers_from_before_the_silence_say_nothing) {
  begin(300 * SECOND);
  pass_until(BEGIN + TIMEOUT / 2);
  liveness_answered(&liveness, BEGIN - SECOND);
  pass_until(BEGIN + TIMEOUT - 1);
  assert_true(liveness_is_dead(&liveness, BEGIN + TIMEOUT));
}

UNIT_TEST(who_answers_is_in_doubt_and_not_dead) {
  begin(300 * SECOND);
  for (uint64_t at_ns = BEGIN; at_ns < BEGIN + 300 * SECOND; at_ns += SECOND) {
    pass_until(at_ns);
    liveness_answered(&liveness, at_ns);
    assert_true(liveness_is_host_there(&liveness, at_ns));
    assert_true(liveness_is_in_doubt(&liveness, at_ns) == (at_ns >= BEGIN + TIMEOUT / 2));
    assert_false(liveness_is_dead(&liveness, at_ns));
  }
  assert_true(liveness_is_dead(&liveness, BEGIN + 300 * SECOND));
}

UNIT_TEST(a_host_that_goes_down_later_is_found) {
  begin(300 * SECOND);
  pass_until(BEGIN + 42 * SECOND);
  liveness_answered(&liveness, BEGIN + 9 * SECOND);
  liveness_answered(&liveness, BEGIN + 5 * SECOND); /* another lane knows less */
  assert_false(liveness_is_dead(&liveness, BEGIN + 19 * SECOND - 1));
  assert_true(liveness_is_dead(&liveness, BEGIN + 19 * SECOND));
}

UNIT_TEST(the_stopped_timeout_is_no_shorter) {
  begin(SECOND);
  pass_until(BEGIN + TIMEOUT - 1);
  liveness_answered(&liveness, BEGIN + TIMEOUT - 1);
  assert_false(liveness_is_dead(&liveness, BEGIN + TIMEOUT - 1));
  assert_true(liveness_is_dead(&liveness, BEGIN + TIMEOUT));
}

UNIT_TEST(time_in_which_we_did_not_run_is_nobodys_silence) {
  begin(300 * SECOND);
  pass_until(BEGIN + 4 * SECOND);
  liveness_answered(&liveness, BEGIN + 4 * SECOND);
  liveness_resumed(&liveness, 100 * SECOND, BEGIN + 105 * SECOND);
  assert_false(liveness_is_dead(&liveness, BEGIN + 105 * SECOND));
  pass_until(BEGIN + 113 * SECOND);
  assert_false(liveness_is_dead(&liveness, BEGIN + 114 * SECOND - 1)); /* its answer moved along */
  assert_true(liveness_is_dead(&liveness, BEGIN + 114 * SECOND));
}

UNIT_MAIN(NULL, NULL)
