/* SPDX-License-Identifier: Apache-2.0 */
/* Which slow lanes reconnect, when, and how often. */
#include "net_plugin/policy/slow_flow_reconnect.h"

#include "tests/lib/unit.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define LANES 8u
#define FULL 16000u /* ps per byte: 0.5 Gb/s */

static struct slow_flow slow_flow;
static struct policy_lane records[POLICY_MAX_LANES];
static uint64_t now_ns;
static unsigned tries[POLICY_MAX_LANES];

/* What a link knows of its lanes. */
static uint64_t up;
static struct policy_config config;
static const struct policy_lanes lanes_now = {
  .config = &config, .up = &up, .first = records, .stride = sizeof *records
};

static void begin(unsigned groups) {
  config = (struct policy_config){ .lanes = LANES, .paths = groups };
  slow_flow = (struct slow_flow){ .lanes = &lanes_now };
  now_ns = SECOND;
  up = (1u << LANES) - 1;
  for (unsigned lane = 0; lane < LANES; lane++) {
    records[lane] = (struct policy_lane){ .ps_per_byte = FULL, .in_flight_bytes = 1 };
    tries[lane] = 0;
  }
}

/* Each lane moves what its rate allows. */
static void load(uint64_t for_ns, unsigned percent) {
  for (uint64_t end_ns = now_ns + for_ns; now_ns < end_ns;) {
    now_ns += 100 * MS;
    for (unsigned lane = 0; lane < LANES; lane++) {
      if ((up >> lane & 1) != 0) {
        records[lane].acked_bytes += 100 * MS * 1000 / records[lane].ps_per_byte * percent / 100;
      }
    }
    int lane = slow_flow_pick(&slow_flow, now_ns);
    if (lane >= 0) {
      tries[lane]++;
    }
  }
}

static unsigned all_tries(void) {
  unsigned sum = 0;
  for (unsigned lane = 0; lane < LANES; lane++) {
    sum += tries[lane];
  }
  return sum;
}

UNIT_TEST(two_on_one_path_are_parted) {
  begin(1);
  records[2].ps_per_byte = records[5].ps_per_byte = 2 * FULL - FULL / 10;
  load(1900 * MS, 100);
  assert_int_equal(all_tries(), 0);
  load(200 * MS, 100);
  assert_int_equal(all_tries(), 1); /* one of them */
  records[2].ps_per_byte = records[5].ps_per_byte = FULL;
  load(60 * SECOND, 100);
  assert_int_equal(all_tries(), 1);
}

UNIT_TEST(the_slowest_is_first_and_alone) {
  begin(1);
  records[1].ps_per_byte = 3 * FULL;
  records[6].ps_per_byte = 10 * FULL;
  load(2100 * MS, 100);
  assert_true(tries[6] == 1 && tries[1] == 0);
  load(SECOND, 100);
  assert_true(tries[6] == 1 && tries[1] == 1);
}

UNIT_TEST(an_honest_slow_path_is_given_up) {
  begin(1);
  records[4].ps_per_byte = 10 * FULL;
  load(6 * SECOND, 100);
  assert_int_equal(tries[4], 1);
  load(2 * SECOND, 100); /* pauses: 4, 8, 16, 32, 64 s */
  assert_int_equal(tries[4], 2);
  load(130 * SECOND, 100);
  assert_int_equal(tries[4], 6);
  load(1000 * SECOND, 100);
  assert_int_equal(tries[4], 6);
  records[4].ps_per_byte = 4 * FULL; /* something is different */
  load(10 * SECOND, 100);
  assert_in_range(tries[4], 7, 8);
}

UNIT_TEST(without_load_nobody_is_slow) {
  begin(1);
  records[4].ps_per_byte = 10 * FULL;
  load(60 * SECOND, 1); /* of 500 MB/s */
  assert_int_equal(all_tries(), 0);
  records[4].in_flight_bytes = 0; /* its few bytes are slow because they are few */
  load(60 * SECOND, 100);
  assert_int_equal(all_tries(), 0);
}

UNIT_TEST(lanes_that_are_down_do_not_count) {
  begin(1);
  up = 3;
  records[1].ps_per_byte = 2 * FULL;
  load(3 * SECOND, 100);
  assert_true(all_tries() == 1 && tries[1] == 1); /* of two, the slower */
}
