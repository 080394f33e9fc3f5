/* SPDX-License-Identifier: Apache-2.0 */
/* Whether coding chunks pays: invented networks, processors and data. */
#include "net_plugin/policy/compression.h"

#include "tests/lib/policy_model.h"
#include "tests/lib/unit.h"

#define SECOND POLICY_MODEL_SECOND
#define NIC POLICY_MODEL_NIC

static struct policy_model model;

static const struct policy_model bound_by_network = {
  .first_flows = 8,
  .nic = NIC,
  .cap = NIC,
  .cpu = 10 * NIC,
  .coding_cpu = 10 * NIC,
  .coded_percent = 74,
};

static bool is_on(void) {
  return model.shared.compression.is_on;
}

UNIT_TEST(it_is_off_where_threads_are_the_limit) {
  struct policy_model config = bound_by_network;
  config.cpu = NIC / 2;
  policy_model_init(&model, &config, 1);
  policy_model_run(&model, 60 * SECOND);
  assert_int_equal(model.shared.compression.turns, 0);
}

/* Bursts pass before the kernel could tell that the network holds them up. */
static const struct policy_model short_of_bytes = {
  .first_flows = 8,
  .nic = NIC / 5,
  .cap = NIC / 40,
  .cpu = 10 * NIC,
  .coding_cpu = 10 * NIC,
  .coding_ps = 100,
  .coded_percent = 74,
  .noise_percent = 10,
  .message_bytes = 400000,
  .burst_bytes = 40000,
  .pause_ns = 2 * POLICY_MODEL_MS,
};

UNIT_TEST(it_is_on_where_coding_costs_next_to_nothing) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    policy_model_init(&model, &short_of_bytes, seed);
    policy_model_run(&model, SECOND);
    assert_true(is_on());
    policy_model_run(&model, 60 * SECOND);
    assert_int_equal(model.shared.compression.turns, 1);
  }
}

/* Something else than the number of bytes takes the time, and coding takes more than it seems to.
 */
UNIT_TEST(it_ends_where_fewer_bytes_are_not_faster) {
  struct policy_model config = short_of_bytes;
  config.cpu = NIC / 10;
  config.coding_cpu = NIC / 12;
  policy_model_init(&model, &config, 1);
  policy_model_run(&model, 300 * SECOND);
  assert_false(is_on());
  assert_in_range(model.shared.compression.turns, 2, 24); /* pauses are doubled */
  assert_in_range(model.on_ns, 1, 6 * SECOND);
}

UNIT_TEST(it_ends_and_pauses_where_it_is_slower) {
  struct policy_model config = bound_by_network;
  config.coding_cpu = NIC / 2;
  policy_model_init(&model, &config, 1);
  policy_model_run(&model, SECOND / 2);
  assert_false(is_on());
  assert_int_equal(model.shared.compression.turns, 2);
  policy_model_run(&model, 300 * SECOND);
  assert_in_range(model.shared.compression.turns, 4, 24); /* pauses are doubled */
  assert_in_range(model.on_ns, 0, 6 * SECOND);
}

/* The peer decodes slowly, so that its window fills up as where the network is slow. */
UNIT_TEST(it_ends_where_it_is_slower_whatever_the_limit_seems) {
  struct compression compression;
  struct limit_window window = {
    .in_flight_ns = 40 * POLICY_MODEL_MS,
    .network_ns = 40 * POLICY_MODEL_MS,
    .loaded_ns = 15 * POLICY_MODEL_MS,
    .bytes = 40000000,
  };
  struct policy_encoded encoded = { .bytes = 1 << 20, .coded_bytes = 800000, .took_ns = 300000 };
  compression_init(&compression);
  for (unsigned i = 0; i < COMPRESSION_LIMITED_WINDOWS; i++) {
    compression_window(&compression, &window, 15 * POLICY_MODEL_MS);
  }
  assert_true(compression.is_on);
  window.bytes /= 2;
  for (unsigned i = 0; i < COMPRESSION_POOR_WINDOWS; i++) {
    assert_true(compression.is_on);
    compression_encoded(&compression, &encoded);
    compression_window(&compression, &window, 15 * POLICY_MODEL_MS);
  }
  assert_false(compression.is_on);
}

UNIT_TEST(it_ends_where_the_network_carries_more) {
  struct policy_model config = bound_by_network;
  config.coding_cpu = 2 * NIC;
  policy_model_init(&model, &config, 1);
  policy_model_run(&model, SECOND);
  assert_true(is_on());
  model.nic = model.cap = 100 * NIC; /* and coding is what limits now */
  policy_model_run(&model, 2 * SECOND);
  assert_false(is_on());
}

UNIT_TEST(noise_does_not_turn_it) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    struct policy_model config = bound_by_network;
    config.noise_percent = 10;
    policy_model_init(&model, &config, seed);
    policy_model_run(&model, 300 * SECOND);
    assert_true(is_on());
    assert_in_range(model.shared.compression.turns, 1, 9);
  }
}
