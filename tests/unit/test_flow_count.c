/* SPDX-License-Identifier: Apache-2.0 */
/* How many flows are worth having: capped flows, a full NIC, noise, traffic that is not bulk. */
#include "net_plugin/policy/flow_count.h"

#include "common/random.h"
#include "tests/lib/unit.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define STEP_NS 100000ull
#define FIRST_FLOWS 8u
#define MOST_LEVEL (FLOW_COUNT_GUESS + 3u)
#define NIC_BYTES_PER_MS 500000ull /* 4 Gb/s */

static struct flow_count count;
static uint64_t now_ns, random_state;
static unsigned changes, tries;

static void begin(uint64_t seed) {
  now_ns = changes = tries = 0;
  random_state = seed;
  flow_count_init(&count, 0, seed);
  flow_count_join(&count, MOST_LEVEL, FIRST_FLOWS);
  flow_count_changed(&count, (int)FIRST_FLOWS);
  flow_count_sent(&count, 8u << 20, now_ns); /* what stays in flight */
}

static unsigned flows_of(unsigned level) {
  return level == 0 ? 1 : FIRST_FLOWS << (level - 1);
}

/* What so many flows of this rate bring in a step, give or take the noise. */
static uint64_t step_bytes(uint64_t flow_bytes_per_ms, unsigned noise_percent) {
  uint64_t rate = flow_bytes_per_ms * flows_of(flow_count_used(&count));
  rate = rate < NIC_BYTES_PER_MS ? rate : NIC_BYTES_PER_MS;
  uint64_t percent = 100 - noise_percent;
  static uint64_t drawn_ns, drawn_percent;
  if (now_ns / (20 * MS) != drawn_ns) { /* as long as a window: shorter noise would average out */
    drawn_ns = now_ns / (20 * MS);
    drawn_percent = noise_percent > 0 ? random_next(&random_state) % (2 * noise_percent + 1) : 0;
  }
  return rate * (percent + drawn_percent) / 100 * STEP_NS / MS;
}

static void load(uint64_t duration_ns, uint64_t flow_bytes_per_ms, unsigned noise_percent,
                 uint64_t backlog_bytes) {
  for (uint64_t end_ns = now_ns + duration_ns; now_ns < end_ns;) {
    unsigned before = count.level;
    bool was_trying = count.is_trying;
    uint64_t bytes = step_bytes(flow_bytes_per_ms, noise_percent);
    int flows = (int)flows_of(flow_count_used(&count));
    flow_count_busy(&count, flows - (int)count.busy_flows, now_ns);
    now_ns += STEP_NS;
    flow_count_sent(&count, bytes, now_ns);
    flow_count_acked(&count, bytes, backlog_bytes, true, now_ns);
    changes += count.level != before;
    tries += was_trying && !count.is_trying;
    assert_in_range(flow_count_used(&count), 0, MOST_LEVEL);
    assert_in_range(flow_count_open(&count, now_ns), flow_count_used(&count), MOST_LEVEL);
  }
}

#define BACKLOG (4u << 20)

static void capped_flows_grow_to_the_most_within_two_seconds(void **state) {
  (void)state;
  begin(1);
  load(2 * SECOND, NIC_BYTES_PER_MS / 64, 0, BACKLOG);
  assert_int_equal(count.level, MOST_LEVEL);
  load(60 * SECOND, NIC_BYTES_PER_MS / 64, 0, BACKLOG);
  assert_int_equal(count.level, MOST_LEVEL);
}

static void growth_ends_where_the_nic_is_full(void **state) {
  (void)state;
  begin(2);
  load(2 * SECOND, NIC_BYTES_PER_MS / 16, 0, BACKLOG);
  assert_int_equal(count.level, FLOW_COUNT_GUESS + 1);
  load(60 * SECOND, NIC_BYTES_PER_MS / 16, 0, BACKLOG);
  assert_int_equal(count.level, FLOW_COUNT_GUESS + 1);
  assert_int_equal(changes, 1);
}

static void a_full_nic_needs_one_flow(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    begin(seed);
    load(SECOND, NIC_BYTES_PER_MS, 2, BACKLOG);
    assert_int_equal(count.level, 0);
    assert_int_equal(changes, 1);
    assert_in_range(tries, 2, 3); /* the second follows the first at once */
    load(599 * SECOND, NIC_BYTES_PER_MS, 2, BACKLOG);
    assert_int_equal(count.level, 0);
    assert_int_equal(changes, 1);
    assert_in_range(tries, 5, 12); /* pauses are doubled */
  }
}

/* A try ends when further pairs cannot change the outcome. */
static void a_try_is_no_longer_than_it_must_be(void **state) {
  (void)state;
  begin(3);
  uint64_t window_ns = FLOW_COUNT_WINDOW_NS + FLOW_COUNT_SETTLED_NS + 2 * STEP_NS;
  while (count.level > 0) {
    load(STEP_NS, NIC_BYTES_PER_MS, 0, BACKLOG);
  }
  assert_int_equal(tries, 2);
  assert_in_range(now_ns, FLOW_COUNT_FIRST_NS,
                  FLOW_COUNT_FIRST_NS + 2 * FLOW_COUNT_WINDOW_NS + 2 * 2 * 3 * window_ns);
}

/* Even if a few of them fill the NIC. */
static void capped_flows_are_no_fewer_than_the_guess(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin(seed);
    uint64_t cap_percent = seed % 2 == 0 ? 50 : 85;
    load(600 * SECOND, NIC_BYTES_PER_MS * cap_percent / 100, 2, BACKLOG);
    assert_int_equal(count.level, FLOW_COUNT_GUESS);
    assert_int_equal(changes, 0);
  }
}

/* One flow delivers as much as eight, since there is no more to send; but it takes all the time. */
static void capped_flows_that_are_idle_at_times(void **state) {
  (void)state;
  begin(8);
  while (now_ns < 600 * SECOND) {
    int flows = (int)flows_of(flow_count_used(&count));
    uint64_t bytes = NIC_BYTES_PER_MS / 16 * STEP_NS / MS;
    flow_count_busy(&count, flows, now_ns);
    flow_count_sent(&count, bytes, now_ns);
    flow_count_busy(&count, -flows, now_ns + STEP_NS / (unsigned)flows);
    now_ns += STEP_NS;
    flow_count_acked(&count, bytes, BACKLOG, true, now_ns);
    assert_true(count.level >= FLOW_COUNT_GUESS);
  }
}

static void one_flow_is_not_for_ever(void **state) {
  (void)state;
  begin(9);
  load(10 * SECOND, NIC_BYTES_PER_MS, 2, BACKLOG);
  assert_int_equal(count.level, 0);
  load(2 * SECOND, NIC_BYTES_PER_MS / 16, 2, BACKLOG); /* flows are capped now */
  assert_int_equal(count.level, FLOW_COUNT_GUESS + 1);
}

static void what_is_not_needed_any_more_goes(void **state) {
  (void)state;
  begin(4);
  load(2 * SECOND, NIC_BYTES_PER_MS / 64, 0, BACKLOG);
  assert_int_equal(count.level, MOST_LEVEL);
  load(30 * SECOND, NIC_BYTES_PER_MS, 0, BACKLOG);
  assert_int_equal(count.level, 0);
  while (count.is_trying) { /* has the next level open */
    load(STEP_NS, NIC_BYTES_PER_MS, 0, BACKLOG);
  }
  /* They are open for a while, then not. */
  assert_int_equal(flow_count_open(&count, now_ns + FLOW_COUNT_KEEP_NS), 0);
}

/* Under conditions that do not change, tries and changes are few, whatever the noise. */
static void noise_does_not_make_it_oscillate(void **state) {
  (void)state;
  static const uint64_t rates[] = { NIC_BYTES_PER_MS / 64, NIC_BYTES_PER_MS / 16,
                                    NIC_BYTES_PER_MS };
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin(seed);
    load(2 * SECOND, rates[seed % 3], 20, BACKLOG);
    assert_true(seed % 3 != 0 || count.level == MOST_LEVEL);
    load(598 * SECOND, rates[seed % 3], 20, BACKLOG);
    assert_in_range(tries, 3, 40);
    assert_in_range(changes, 0, 20);
  }
}

/* Tries that repeat others, at multiples of their pause. Pauses are multiples of the shortest. */
static void hosts_try_at_the_same_time(void **state) {
  (void)state;
  static const uint64_t day_ns = 3 * SECOND / 2;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin(seed);
    count.time.day_ns = day_ns;
    unsigned begun = 0;
    load(SECOND + seed * 37 * MS, NIC_BYTES_PER_MS / 8, 2, BACKLOG);
    while (now_ns < 60 * SECOND) {
      bool was_trying = count.is_trying;
      load(STEP_NS, NIC_BYTES_PER_MS / 8, 2, BACKLOG);
      if (count.is_trying && !was_trying) {
        begun++;
        assert_in_range((now_ns + day_ns) % FLOW_COUNT_INTERVAL_NS, 0, MS);
      }
    }
    assert_in_range(begun, 3, 6);
  }
}

/* Throughput that comes and goes is no gain, however large the differences. */
static void bursts_are_no_gain(void **state) {
  (void)state;
  unsigned grown = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    begin(seed);
    load(2 * SECOND, NIC_BYTES_PER_MS, 60, BACKLOG);
    grown += count.level > FLOW_COUNT_GUESS;
  }
  assert_in_range(grown, 0, 15);
}

static void small_traffic_is_left_alone(void **state) {
  (void)state;
  begin(5);
  load(60 * SECOND, NIC_BYTES_PER_MS / 64, 0, FLOW_COUNT_BACKLOG_BYTES - 1);
  assert_int_equal(tries, 0);
  assert_false(count.is_trying);
}

static void many_flows_are_not_doubled(void **state) {
  (void)state;
  begin(6);
  flow_count_changed(&count, (int)(FLOW_COUNT_FLOWS_MAX / 2));
  while (now_ns < 10 * SECOND) { /* that fewer would do is tried */
    load(10 * MS, NIC_BYTES_PER_MS / 64, 0, BACKLOG);
    assert_int_equal(flow_count_open(&count, now_ns), FLOW_COUNT_GUESS);
  }
  assert_int_equal(changes, 0);
}

static void windows_wait_for_flows(void **state) {
  (void)state;
  begin(7);
  while (!count.is_trying) {
    load(STEP_NS, NIC_BYTES_PER_MS / 64, 0, BACKLOG);
  }
  for (uint64_t end_ns = now_ns + FLOW_COUNT_SETTLE_MAX_NS - 2 * STEP_NS; now_ns < end_ns;) {
    now_ns += STEP_NS;
    flow_count_sent(&count, 1000, now_ns);
    flow_count_acked(&count, 1000, BACKLOG, false, now_ns);
    assert_true(count.is_settling);
  }
  load(2 * STEP_NS, NIC_BYTES_PER_MS / 64, 0, BACKLOG); /* they never come: it goes on without */
  assert_false(count.is_settling);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(capped_flows_grow_to_the_most_within_two_seconds),
    cmocka_unit_test(growth_ends_where_the_nic_is_full),
    cmocka_unit_test(a_full_nic_needs_one_flow),
    cmocka_unit_test(a_try_is_no_longer_than_it_must_be),
    cmocka_unit_test(capped_flows_are_no_fewer_than_the_guess),
    cmocka_unit_test(capped_flows_that_are_idle_at_times),
    cmocka_unit_test(one_flow_is_not_for_ever),
    cmocka_unit_test(what_is_not_needed_any_more_goes),
    cmocka_unit_test(noise_does_not_make_it_oscillate),
    cmocka_unit_test(hosts_try_at_the_same_time),
    cmocka_unit_test(bursts_are_no_gain),
    cmocka_unit_test(small_traffic_is_left_alone),
    cmocka_unit_test(many_flows_are_not_doubled),
    cmocka_unit_test(windows_wait_for_flows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
