/* SPDX-License-Identifier: Apache-2.0 */
/* topology: what sysfs adds to what hwloc says, what is near, and what changes nothing. The texts
 * of invented machines are test_machine.c's. */
#include "common/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define TOPOLOGY_TEST(function) UNIT_TEST_WITH(function, test_tree_create, test_tree_remove)

/* Files of the tree have changed. */
static void assert_text(const char *expected) {
  free(topology_read("/nowhere"));
  char *text = topology_read(test_tree.root);
  assert_string_equal(text ? text : "none", expected);
  free(text);
}

/* ---- what hwloc does not know ---- */

#define SWITCHES "switch(nic 8086:1563, switch(2 x gpu 10de:2330))"

TOPOLOGY_TEST(drivers_and_what_comes_and_goes_are_of_sysfs) {
  char here[TREE_PATH_MAX / 2], path[TREE_PATH_MAX];
  assert_non_null(getcwd(here, sizeof here));
  snprintf(path, sizeof path, "%s/tests/data/machines/nested/topology.xml", here);
  tree_link(&test_tree, "topology.xml", path);
  assert_text("numa 1: node[2 x nic, root(nic 8086:1564, nic 8086:1565, " SWITCHES ")]");
  tree_make_directory(&test_tree, "drivers/ixgbe");
  tree_make_directory(&test_tree, "drivers/hv_netvsc");
  tree_link(&test_tree, "sys/bus/pci/devices/0000:00:02.0/driver", "../../../../../drivers/ixgbe");
  tree_link(&test_tree, "sys/class/net/eth7/device/driver", "../../../../../drivers/hv_netvsc");
  /* A virtual function, and a NIC on USB. */
  tree_make_directory(&test_tree, "sys/bus/pci/devices/0000:00:02.1/physfn");
  tree_write(&test_tree, "sys/class/net/bmc0/device/bInterfaceNumber", "00\n");
  assert_text("numa 1: node[nic hv_netvsc, root(nic 8086:1564 ixgbe, " SWITCHES ")]");
}

/* ---- what is near ---- */

static void assert_near(const char *root, const char *path, int node, const char *cpus) {
  cpu_set_t near;
  char text[CPU_SETSIZE + 1] = "";
  assert_int_equal(topology_near(root, path, &near), node);
  for (size_t cpu = 0; cpu < 8; cpu++) {
    text[cpu] = CPU_ISSET(cpu, &near) ? '1' : '0';
  }
  assert_string_equal(text, cpus);
}

TOPOLOGY_TEST(devices_are_near_the_node_of_their_bus) {
  assert_near("tests/data/machines/switches", "/sys/devices/pci0000:10/0000:13:00.0", 0,
              "10000000");
  assert_near("tests/data/machines/switches", "0000:50/0000:53:00.0", 1, "01000000");
  assert_near("tests/data/machines/switches", "/sys/devices/0000:99:00.0", -1,
              "00000000"); /* plugged in since */
  assert_near("tests/data/machines/switches", "/sys/devices/virtual/net/veth0", -1, "00000000");
  assert_near("tests/data/machines/switches", "", -1, "00000000");
  assert_near("/nowhere", "/sys/devices/pci0000:10/0000:13:00.0", -1, "00000000");
  /* of a machine whose firmware does not tell */
  assert_near("tests/data/machines/gcp-a3-mega", "/0000:80:00.0", -1, "00000000");
}

/* ---- hwloc's surroundings ---- */

/* Each of these would change what is seen, or end the process. */
TOPOLOGY_TEST(no_variable_of_hwlocs_counts) {
  static const char *const names[] = { "HWLOC_XMLFILE",      "HWLOC_SYNTHETIC",
                                       "HWLOC_FSROOT",       "HWLOC_COMPONENTS",
                                       "HWLOC_PLUGINS_PATH", "HWLOC_THISSYSTEM",
                                       "HWLOC_PCI_LOCALITY" };
  free(topology_read("/nowhere"));
  char *before = topology_read("/");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    setenv(names[i], test_tree.root, 1);
  }
  free(topology_read("/nowhere"));
  char *after = topology_read("/");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    unsetenv(names[i]);
  }
  assert_int_equal(!before, !after);
  assert_string_equal(before ? before : "", after ? after : "");
  free(before);
  free(after);
}

/* ---- fingerprints ---- */

TOPOLOGY_TEST(what_is_no_topology_is_none) {
  static const char *const texts[] = { "", "<topology", "<topology version=\"2.0\">\n</topology>\n",
                                       "<topology version=\"2.0\"><object type=\"Machine\"/>" };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tree_write(&test_tree, "topology.xml", "%s", texts[i]);
    assert_text("none");
  }
}

TOPOLOGY_TEST(only_fingerprints_are_fingerprints) {
  assert_true(topology_is_id("0123456789ab", 12));
  assert_false(topology_is_id("0123456789abc", 13));
  assert_false(topology_is_id("0123456789a", 11));
  assert_false(topology_is_id("0123456789ag", 12));
  assert_false(topology_is_id("01234\0006789ab", 12));
  assert_false(topology_is_id("", 0));
}
