/* SPDX-License-Identifier: Apache-2.0 */
/* What holds a lane up, from what its transport has counted. */
#include "net_plugin/policy/limit.h"

#include "tests/lib/unit.h"

#define MS 1000000ull

static struct policy_lane lane;
static struct policy_transport transport;
static uint64_t now_ns;

static void begin(void) {
  now_ns = 5 * MS;
  transport = (struct policy_transport){ .busy_us = 0 };
  policy_lane_begin(&lane, now_ns);
  assert_int_equal(limit_of_lane(&lane), POLICY_LIMIT_UNKNOWN);
}

/* A period in flight, of which TCP was busy for a part, and the peer closed for a part of that. */
static struct limit_window period(unsigned busy_percent, unsigned peer_percent,
                                  bool is_app_limited) {
  uint64_t period_us = LIMIT_PERIOD_NS / 1000;
  now_ns += LIMIT_PERIOD_NS;
  transport.busy_us += period_us * busy_percent / 100;
  transport.peer_us += period_us * peer_percent / 100;
  transport.is_app_limited = is_app_limited;
  return limit_lane_measured(&lane, &transport, false, now_ns);
}

static enum policy_limit limit_of(unsigned busy_percent, unsigned peer_percent,
                                  bool is_app_limited) {
  begin();
  for (unsigned i = 0; i < 20; i++) {
    period(busy_percent, peer_percent, is_app_limited);
  }
  return limit_of_lane(&lane);
}

UNIT_TEST(each_limit_is_told_from_the_others) {
  assert_int_equal(limit_of(100, 0, false), POLICY_LIMIT_NETWORK);
  assert_int_equal(limit_of(100, 0, true), POLICY_LIMIT_CPU);
  assert_int_equal(limit_of(10, 0, false), POLICY_LIMIT_CPU);
  assert_int_equal(limit_of(100, 90, false), POLICY_LIMIT_PEER);
}

UNIT_TEST(a_lane_with_pauses_is_limited_by_the_application) {
  begin();
  for (unsigned i = 0; i < 20; i++) {
    limit_lane_busy(&lane, now_ns);
    now_ns += LIMIT_PERIOD_NS / 4;
    limit_lane_idle(&lane, now_ns);
    now_ns += LIMIT_PERIOD_NS * 3 / 4;
    transport.busy_us += LIMIT_PERIOD_NS / 4000;
    struct limit_window passed = limit_lane_measured(&lane, &transport, true, now_ns);
    assert_int_equal(passed.in_flight_ns, LIMIT_PERIOD_NS / 4);
    assert_true(i > 0 || lane.past_ns == LIMIT_PERIOD_NS);
  }
  assert_int_equal(limit_of_lane(&lane), POLICY_LIMIT_APPLICATION);
}
