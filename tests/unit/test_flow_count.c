/* SPDX-License-Identifier: Apache-2.0 */
/* How many flows are worth having: capped flows, a full NIC, bursts, noise, networks that change.
 */
#include "net_plugin/policy/flow_count.h"

#include "tests/lib/policy_model.h"
#include "tests/lib/unit.h"

#define SECOND POLICY_MODEL_SECOND
#define NIC POLICY_MODEL_NIC
#define MOST_LEVEL (FLOW_COUNT_GUESS + 3u)
#define FIRST_FLOWS 8u

static struct policy_model model;

static const struct policy_model bulk = {
  .first_flows = FIRST_FLOWS,
  .nic = NIC,
  .cap = NIC,
  .cpu = 10 * NIC,
};

static void begin(uint64_t cap, uint64_t cpu, unsigned noise_percent, uint64_t seed) {
  struct policy_model config = bulk;
  config.cap = cap;
  config.cpu = cpu;
  config.noise_percent = noise_percent;
  policy_model_init(&model, &config, seed);
}

/* The speed is as it was, and more flows would be faster: bursts hid it, or a busy moment. */
UNIT_TEST(growth_that_has_ended_is_tried_again) {
  begin(NIC / 16, 10 * NIC, 0, 1);
  policy_model_run(&model, SECOND / 2);
  assert_int_equal(model.shared.count.level, FLOW_COUNT_GUESS + 1);
  model.nic = 4 * NIC;
  policy_model_run(&model, SECOND / 4);
  assert_int_equal(model.shared.count.level, FLOW_COUNT_GUESS + 1);
  policy_model_run(&model, 4 * SECOND);
  assert_int_equal(model.shared.count.level, MOST_LEVEL);
}

/* While new memory is touched and TCP finds its speed a level more is tried, and what comes then is
 * faster whatever the number of flows. FLOW_COUNT_FEW: doubled, there are too many for the
 * exception. */
UNIT_TEST(a_slow_beginning_is_not_for_want_of_flows) {
  struct policy_model config = bulk;
  config.first_flows = FLOW_COUNT_FEW;
  config.cap = NIC / 4;
  config.noise_percent = 15;
  for (uint64_t seed = 1; seed <= 9; seed++) {
    policy_model_init(&model, &config, seed);
    model.nic = NIC / 8;
    while (model.shared.count.level == FLOW_COUNT_GUESS) {
      policy_model_run(&model, 1);
    }
    model.nic = NIC;
    while (model.now_ns < SECOND / 2) {
      policy_model_run(&model, 1);
      assert_in_range(model.shared.count.level, FLOW_COUNT_GUESS, FLOW_COUNT_GUESS + 1);
    }
    assert_int_equal(model.shared.count.level, FLOW_COUNT_GUESS);
  }
}

/* Threads are the limit, or the peer, which counts like them. */
UNIT_TEST(an_uncapped_network_needs_one_flow) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    begin(NIC, NIC / 2, 0, seed);
    policy_model_run(&model, 60 * SECOND);
    assert_int_equal(model.shared.count.level, 0);
    /* The guess is tried after 1 s, then after pauses that are doubled: up and down again. */
    assert_in_range(model.changes, 1, 1 + 2 * 6);
  }
}

/* One flow is slower than a burst over eight, though neither is limited by the network for long. */
UNIT_TEST(bursts_hide_the_cap) {
  struct policy_model config = bulk;
  config.cap = NIC / 16;
  config.message_bytes = 1u << 20;
  config.burst_bytes = 128u << 10;
  config.pause_ns = 1000000;
  policy_model_init(&model, &config, 1);
  uint64_t low_ns = 0, longest_ns = 0;
  while (model.now_ns < 60 * SECOND) {
    uint64_t from_ns = model.now_ns;
    policy_model_run(&model, 1);
    low_ns = model.shared.count.level < FLOW_COUNT_GUESS ? low_ns + model.now_ns - from_ns : 0;
    longest_ns = low_ns > longest_ns ? low_ns : longest_ns;
  }
  assert_in_range(longest_ns, 1, 100 * POLICY_MODEL_MS);
  assert_true(model.shared.count.level >= FLOW_COUNT_GUESS);
  assert_true(model.shared.count.pause_ns > FLOW_COUNT_PAUSE_NS);
}

UNIT_TEST(one_flow_is_not_for_ever) {
  begin(NIC, NIC / 2, 0, 1);
  policy_model_run(&model, 10 * SECOND);
  assert_int_equal(model.shared.count.level, 0);
  model.cap = NIC / 32;
  policy_model_run(&model, 2 * SECOND);
  assert_int_equal(model.shared.count.level, FLOW_COUNT_GUESS + 1);
}

/* Messages that pass in bursts make no capped flow one that needs no others. */
UNIT_TEST(flows_that_were_faster_stay) {
  begin(NIC / 16, 10 * NIC, 0, 1);
  policy_model_run(&model, SECOND / 2);
  assert_int_equal(model.shared.count.level, FLOW_COUNT_GUESS + 1);
  model.cpu = 5 * NIC / 8; /* nearly as fast, and the network is not the limit */
  policy_model_run(&model, 20 * SECOND);
  assert_in_range(model.shared.count.level, FLOW_COUNT_GUESS + 1, MOST_LEVEL);
  assert_in_range(model.changes, 1, 6); /* two climbs, each compared again */
}

/* What was used stays open for a while. */
UNIT_TEST(flows_that_were_used_stay_open) {
  begin(NIC, NIC / 2, 0, 1);
  while (model.shared.count.level > 0) {
    policy_model_run(&model, 1);
    assert_true(model.now_ns < 10 * SECOND);
  }
  assert_int_equal(flow_count_open(&model.shared.count, model.now_ns), FLOW_COUNT_GUESS);
  assert_int_equal(flow_count_open(&model.shared.count, model.now_ns + FLOW_COUNT_KEEP_NS), 0);
}

/* In minutes, under conditions that do not change. */
UNIT_TEST(noise_does_not_make_it_flap) {
  static const uint64_t caps[] = { NIC / 64, NIC / 16, NIC };
  for (uint64_t seed = 1; seed <= 9; seed++) {
    begin(caps[seed % 3], seed % 3 == 2 ? NIC / 2 : 10 * NIC, 15, seed);
    policy_model_run(&model, 2 * SECOND);
    model.changes = 0;
    policy_model_run(&model, 300 * SECOND);
    assert_in_range(model.changes, 0, 30);
    assert_true(seed % 3 == 2 || model.shared.count.level >= FLOW_COUNT_GUESS);
  }
}

UNIT_TEST(many_flows_are_not_doubled) {
  begin(NIC / 64, 10 * NIC, 0, 1);
  flow_count_changed(&model.shared.count, (int)(FLOW_COUNT_FLOWS_MAX / 2));
  policy_model_run(&model, 10 * SECOND);
  assert_int_equal(model.shared.count.level, FLOW_COUNT_GUESS);
}

/* Windows of 20 ms in which the network is the limit and 2 % of the packets are lost. */
static void lossy_windows(struct flow_count *count, unsigned windows, uint64_t packets) {
  const struct limit_window window = {
    .in_flight_ns = 80000000,
    .network_ns = 80000000,
    .acked_bytes = packets * FLOW_COUNT_PACKET_BYTES,
    .retransmits = packets / 50,
    .loaded_ns = 40000000,
    .bytes = packets * FLOW_COUNT_PACKET_BYTES,
  };
  for (unsigned i = 0; i < windows; i++) {
    flow_count_window(count, &window, 20000000, count->ns + 20000000);
  }
}

/* For 8 s. */
static void lossy_windows_stay_at(struct flow_count *count, unsigned level) {
  for (unsigned i = 0; i < 400; i++) {
    lossy_windows(count, 1, 500);
    assert_int_equal(count->level, level);
  }
}

/* Seven peers, four flows to each, until fewer are tried. */
static void try_fewer(struct flow_count *count) {
  flow_count_init(count);
  flow_count_join(count, MOST_LEVEL);
  flow_count_changed(count, 28);
  lossy_windows(count, FLOW_COUNT_CALM_WINDOWS, 500);
  assert_int_equal(count->level, 0);
}

/* Fewer lose no more, and are kept. */
UNIT_TEST(many_flows_that_lose_packets_become_few) {
  struct flow_count count;
  try_fewer(&count);
  lossy_windows(&count, FLOW_COUNT_CROWDED_WINDOWS, 500);
  assert_int_equal(count.state, FLOW_COUNT_STEADY);
  lossy_windows_stay_at(&count, 0);
}

/* As policed ones do, each of which has a rate of its own. */
UNIT_TEST(many_flows_that_are_faster_stay) {
  struct flow_count count;
  try_fewer(&count);
  lossy_windows(&count, FLOW_COUNT_CROWDED_WINDOWS, 150);
  lossy_windows_stay_at(&count, FLOW_COUNT_GUESS);
}

/* A climb has ended, and level 0 was too few. */
UNIT_TEST(another_speed_counts_after_so_many_windows) {
  const struct limit_window half = { .loaded_ns = 1000000,
                                     .in_flight_ns = 1000000,
                                     .acked_bytes = 500 };
  struct flow_count count;
  flow_count_init(&count);
  flow_count_join(&count, MOST_LEVEL);
  count.level = count.end = FLOW_COUNT_GUESS + 1;
  count.usual = 1000;
  count.retry_ns = count.due_ns = UINT64_MAX;
  for (unsigned i = 1; i <= FLOW_COUNT_OTHER_WINDOWS; i++) {
    flow_count_window(&count, &half, 1, i);
    assert_int_equal(count.level, i < FLOW_COUNT_OTHER_WINDOWS ? FLOW_COUNT_GUESS + 1 : 0);
  }
}
