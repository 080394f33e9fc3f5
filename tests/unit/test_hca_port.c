/* SPDX-License-Identifier: Apache-2.0 */
/* States and rates as kernels write them, and others. */
#include "common/hca_port.h"

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define PORT "sys/class/infiniband/mlx5_0/ports/1/"

static struct hca_port port;

static uint32_t mbps_of(const char *rate) {
  tree_write(&test_tree, PORT "rate", "%s\n", rate);
  hca_port_read(test_tree.root, "mlx5_0", 1, &port);
  return port.mbps;
}

#define PORT_TEST(function) UNIT_TEST_WITH(function, test_tree_create, test_tree_remove)

PORT_TEST(rates_are_read) {
  assert_int_equal(mbps_of("100 Gb/sec (4X EDR)"), 100000);
  assert_int_equal(mbps_of("2.5 Gb/sec (1X SDR)"), 2500);
  assert_int_equal(mbps_of("800 Gb/sec (8X NDR)"), 800000);
}

PORT_TEST(other_rates_are_none) {
  static const char *const rates[] = { "", "fast", "-5 Gb/sec", "0 Gb/sec", "100", "100 Mb/sec" };
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
    assert_int_equal(mbps_of(rates[i]), 0);
  }
}

/* The rate of one that is down is its reader's to judge. */
PORT_TEST(states_are_read) {
  static const struct {
    const char *text, *state;
    bool is_active;
  } cases[] = {
    { "4: ACTIVE", "ACTIVE", true }, { "1: DOWN", "DOWN", false }, { "2: INIT", "INIT", false },
    { "ACTIVE", "ACTIVE", true },    { "up", "up", false },        { "", "", false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tree_write(&test_tree, PORT "state", "%s\n", cases[i].text);
    assert_int_equal(mbps_of("400 Gb/sec (4X NDR)"), 400000);
    assert_string_equal(port.state, cases[i].state);
    assert_int_equal(port.is_active, cases[i].is_active);
  }
}

PORT_TEST(what_is_missing_is_not_known) {
  hca_port_read(test_tree.root, "mlx5_0", 1, &port);
  assert_string_equal(port.state, "");
  assert_false(port.is_active);
  assert_int_equal(port.mbps, 0);
}

UNIT_MAIN(NULL, NULL)
