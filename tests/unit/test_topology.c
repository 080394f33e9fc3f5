/* SPDX-License-Identifier: Apache-2.0 */
/* topology: the texts of invented machines, what changes them and what must not. */
#include "common/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "tests/lib/each_failure.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static int stop(void **state) {
  param_load((char *[]){ NULL });
  return test_tree_remove(state);
}

static void assert_text(const char *root, const char *expected) {
  char *text = topology_read(root);
  assert_non_null(text);
  assert_string_equal(text, expected);
  free(text);
}

/* ---- the captured trees ---- */

#define TOPOLOGY_TEST(function) UNIT_TEST_WITH(function, test_tree_create, stop)

TOPOLOGY_TEST(each_machine_has_its_text) {
  static const struct {
    const char *machine, *id, *text;
  } cases[] = {
    { "aws", "43d74c2872d9",
      "numa 2: 2 x node[root(4 x gpu 10de:20b0, nic 1d0f:ec20 ena 100000)]" },
    { "gcp", "6b85dabaffe0", "numa 1: node[root(gpu 10de:20b0, nic 1ae0:0042 gvnic 24000)]" },
    { "azure", "620930ab53c8",
      "numa 2: node[root(gpu 10de:20b5, nic 15b3:101a mlx5_core 100000)], "
      "unplaced[nic hv_netvsc]" },
    { "alibaba", "220bb8e539ea",
      "numa 1: node[root(gpu 10de:2236, nic 1af4:1000 virtio-pci, nic 1ded:107f erdma)]" },
    { "oci", "d0e4563ad7bf", "numa 2: node[nic 15b3:101d mlx5_core 50000]" },
    { "tencent", "2da20bf678af", "numa 1: node[nic 1af4:1000 virtio-pci]" },
    { "gcp-a3-mega", "4395fa1f4385",
      "numa 2: unplaced[8 x gpu 10de:2330, 9 x nic 1ae0:0042 gve 200000]" },
    { "azure-nd-h100", "3bee6d919eca",
      "numa 2: unplaced[8 x gpu 10de:2330, nic 15b3:101a mlx5_core 80000]" },
    { "alibaba-a100", "c6e9e40f8e6c",
      "numa 2: unplaced[8 x gpu 10de:20b2, nic 1af4:1041 virtio_net]" },
    { "oci-h100", "db00eaf987ac",
      "numa 2: unplaced[8 x gpu 10de:2330, nic 15b3:101d mlx5_core 100000, "
      "16 x nic 15b3:1021 mlx5_core 200000]" },
    { "tencent-a100", "c7ab8352fa2f",
      "numa 2: unplaced[8 x gpu 10de:20b0, nic 1af4:1000 virtio_net]" },
    { "baremetal-roce", "e43843c774fc",
      "numa 2: unplaced[8 x gpu 10de:2330, 9 x nic 15b3:1021 mlx5_core 400000]" },
    { "baremetal-25g", "59feac412e9c",
      "numa 2: unplaced[2 x gpu 10de:20f1, nic 8086:158b i40e 25000]" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char root[128], variable[160], id[TOPOLOGY_ID_MAX];
    snprintf(root, sizeof root, "tests/data/sysfs/%s", cases[i].machine);
    assert_text(root, cases[i].text);
    snprintf(variable, sizeof variable, "STRATUS_SYSFS_ROOT=%s", root);
    param_load((char *[]){ variable, NULL });
    topology_identify(id);
    assert_string_equal(id, cases[i].id);
  }
}

/* ---- a machine of several switches ---- */

/* Two sockets; on each, two switches with two GPUs and two NICs; NVSwitches, and a NIC for other
 * things, on a root port. */
struct wishes {
  int first_bus;       /* where enumeration begins */
  bool is_backwards;   /* NUMA nodes and slots the other way round */
  bool is_link_down;   /* of one NIC */
  bool has_extras;     /* virtual functions, USB, a bridge, memory without CPUs, one that goes */
  int gpus_per_switch; /* 0: 2 */
  const char *rate;    /* of the NICs on switches; NULL: 400000 */
};

static void write_function(const char *path, const char *id, const char *class_code, int numa,
                           const char *driver) {
  char file[512], link[512];
  const char *address = strrchr(path, '/') + 1;
  snprintf(file, sizeof file, "%s/vendor", path);
  tree_write(&test_tree, file, "0x%.4s\n", id);
  snprintf(file, sizeof file, "%s/device", path);
  tree_write(&test_tree, file, "0x%s\n", id + 5);
  snprintf(file, sizeof file, "%s/class", path);
  tree_write(&test_tree, file, "0x%s\n", class_code);
  snprintf(file, sizeof file, "%s/numa_node", path);
  tree_write(&test_tree, file, "%d\n", numa);
  snprintf(file, sizeof file, "%s/driver", path);
  /* As many steps up as the path is deep. */
  int depth = 0;
  for (const char *c = path; *c; c++) {
    depth += *c == '/';
  }
  size_t used = 0;
  for (int i = 0; i < depth; i++) {
    used += (size_t)snprintf(link + used, sizeof link - used, "../");
  }
  snprintf(link + used, sizeof link - used, "bus/pci/drivers/%s", driver);
  tree_link(&test_tree, file, link);
  snprintf(file, sizeof file, "sys/bus/pci/drivers/%s", driver);
  tree_make_directory(&test_tree, file);
  snprintf(file, sizeof file, "sys/bus/pci/devices/%s", address);
  snprintf(link, sizeof link, "../../../../%s", path);
  tree_link(&test_tree, file, link);
}

static void write_interface(const char *function, const char *name, const char *speed) {
  char file[512], link[512];
  snprintf(file, sizeof file, "sys/class/net/%s/device", name);
  snprintf(link, sizeof link, "../../../../%s", function);
  tree_link(&test_tree, file, link);
  snprintf(file, sizeof file, "sys/class/net/%s/speed", name);
  tree_write(&test_tree, file, "%s\n", speed);
}

static void write_switch(const struct wishes *w, int root, int bus, int numa, int number) {
  int gpus = w->gpus_per_switch ? w->gpus_per_switch : 2;
  for (int i = 0; i < gpus + 2; i++) {
    int slot = w->is_backwards ? gpus + 1 - i : i;
    char path[256], name[32];
    snprintf(path, sizeof path,
             "sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0/"
             "0000:%02x:00.0",
             root, root, bus, bus + 1, slot, bus + 2 + slot);
    if (i < gpus) {
      write_function(path, "10de:2330", "030200", numa, "nvidia");
      continue;
    }
    write_function(path, "15b3:1021", "020700", numa, "mlx5_core");
    snprintf(name, sizeof name, "ib%d", 2 * number + i - gpus);
    const char *speed = w->rate ? w->rate : "400000";
    write_interface(path, name, w->is_link_down && number == 0 && i == gpus ? "-1" : speed);
  }
}

static void write_extras(void) {
  static const char path[] = "sys/devices/pci0000:00/0000:00:02.1";
  write_function(path, "8086:1564", "020000", 0, "iavf");
  tree_link(&test_tree, "sys/devices/pci0000:00/0000:00:02.1/physfn", "../0000:00:02.0");
  write_interface(path, "vf0", "10000");
  tree_make_directory(&test_tree, "sys/devices/pci0000:00/0000:00:14.0/usb1/1-1");
  write_interface("sys/devices/pci0000:00/0000:00:14.0/usb1/1-1", "bmc0", "100");
  tree_make_directory(&test_tree, "sys/bus/pci/devices/0000:00:03.0"); /* it is being removed */
  tree_write(&test_tree, "sys/class/net/br0/mtu", "1500\n");
  tree_write(&test_tree, "sys/devices/system/node/online", "0-9\n");
}

static void write_machine(const struct wishes *w) {
  tree_remove(&test_tree);
  tree_create(&test_tree);
  tree_write(&test_tree, "sys/devices/system/node/has_cpu", "0-1\n");
  tree_write(&test_tree, "sys/devices/system/node/online", "0-1\n");
  for (int i = 0; i < 4; i++) {
    int place = w->is_backwards ? 3 - i : i;
    write_switch(w, w->first_bus + 0x20 * place, w->first_bus + 0x20 * place + 2, place / 2, i);
  }
  for (int i = 0; i < 4; i++) {
    char path[256];
    snprintf(path, sizeof path, "sys/devices/pci0000:%02x/0000:%02x:04.%d", w->first_bus + 0x90,
             w->first_bus + 0x90, i);
    write_function(path, "10de:22a3", "068000", 1, "nvidia-nvswitch");
  }
  write_function("sys/devices/pci0000:00/0000:00:02.0", "8086:1563", "020000", 0, "ixgbe");
  write_interface("sys/devices/pci0000:00/0000:00:02.0", w->is_backwards ? "eth9" : "eth0",
                  "10000");
  write_function("sys/devices/pci0000:00/0000:00:1f.0", "8086:1bca", "060100", 0, "lpc_ich");
  if (w->has_extras) {
    write_extras();
  }
}

#define SWITCH(rate) "switch(2 x gpu 10de:2330, 2 x nic 15b3:1021 mlx5_core " rate ")"
#define MACHINE(rate)                                                                              \
  "numa 2: node[nic 8086:1563 ixgbe 10000, 2 x " SWITCH(                                           \
      rate) "], node[root(4 x nvswitch 10de:22a3), 2 x " SWITCH(rate) "]"

TOPOLOGY_TEST(paths_and_nodes_are_in_the_text) {
  write_machine(&(struct wishes){ .first_bus = 0x10 });
  assert_text(test_tree.root, MACHINE("400000"));
}

/* What is in pairs has moved; the node of what is not stays. */
TOPOLOGY_TEST(another_boot_changes_nothing) {
  write_machine(&(struct wishes){ .first_bus = 0x18, .is_backwards = true });
  assert_text(test_tree.root, MACHINE("400000"));
}

TOPOLOGY_TEST(what_comes_and_goes_changes_nothing) {
  write_machine(&(struct wishes){ .first_bus = 0x10, .is_link_down = true });
  assert_text(test_tree.root, MACHINE("400000"));
  write_machine(&(struct wishes){ .first_bus = 0x10, .has_extras = true });
  assert_text(test_tree.root, MACHINE("400000"));
}

TOPOLOGY_TEST(another_shape_is_another_text) {
  write_machine(&(struct wishes){ .first_bus = 0x10, .rate = "200000" });
  assert_text(test_tree.root, MACHINE("200000"));
  write_machine(&(struct wishes){ .first_bus = 0x10, .gpus_per_switch = 1 });
  assert_text(test_tree.root,
              "numa 2: node[nic 8086:1563 ixgbe 10000, 2 x switch(gpu 10de:2330, 2 x nic 15b3:1021 "
              "mlx5_core 400000)], node[root(4 x nvswitch 10de:22a3), 2 x switch(gpu 10de:2330, 2 "
              "x nic 15b3:1021 mlx5_core 400000)]");
}

/* A process without the host's interfaces sees RDMA devices. */
TOPOLOGY_TEST(rates_of_rdma_ports_count_where_they_are_up) {
  static const char nic[] = "sys/devices/pci0000:00/0000:00:03.0";
  tree_write(&test_tree, "sys/devices/system/node/online", "0\n");
  write_function(nic, "15b3:1021", "020700", -1, "mlx5_core");
  assert_text(test_tree.root, "numa 1: node[nic 15b3:1021 mlx5_core]");
  tree_link(&test_tree, "sys/class/infiniband/mlx5_0/device",
            "../../../../sys/devices/pci0000:00/0000:00:03.0");
  tree_write(&test_tree, "sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  tree_write(&test_tree, "sys/class/infiniband/mlx5_0/ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
  assert_text(test_tree.root, "numa 1: node[nic 15b3:1021 mlx5_core]");
  tree_write(&test_tree, "sys/class/infiniband/mlx5_0/ports/1/state", "2: INIT\n");
  assert_text(test_tree.root, "numa 1: node[nic 15b3:1021 mlx5_core]");
  tree_write(&test_tree, "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  assert_text(test_tree.root, "numa 1: node[nic 15b3:1021 mlx5_core 2500]");
  tree_write(&test_tree, "sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  assert_text(test_tree.root, "numa 1: node[nic 15b3:1021 mlx5_core 400000]");
}

TOPOLOGY_TEST(switches_behind_switches_are_told) {
  struct topology_device devices[] = {
    { .path = (char *)"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
      .text = (char *)"gpu a",
      .numa = 0 },
    { .path = (char *)"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0",
      .text = (char *)"gpu a",
      .numa = 0 },
    { .path = (char *)"/sys/devices/pci0000:00/0000:00:01.0/0000:01:01.0/0000:05:00.0",
      .text = (char *)"nic b",
      .numa = 0 },
    { .path = (char *)"/sys/devices/pci0000:00/0000:00:02.0", .text = (char *)"nic c", .numa = 0 },
    { .path = (char *)"/sys/devices/platform/eth", .text = (char *)"nic d", .numa = -1 },
    { .path = (char *)"/sys/devices/platform/eth", .text = (char *)"nic e", .numa = -1 },
  };
  char *text = topology_format(devices, 6, 1);
  assert_string_equal(text, "numa 1: node[nic d, nic e, root(nic c, switch(nic b, switch(2 x "
                            "gpu a)))]");
  free(text);
}

/* ---- fingerprints ---- */

TOPOLOGY_TEST(machine_without_devices_has_none) {
  char id[TOPOLOGY_ID_MAX] = "x";
  assert_null(topology_read("/nowhere"));
  tree_write(&test_tree, "sys/devices/system/node/online", "0-1\n");
  tree_write(&test_tree, "sys/class/net/eth0/speed", "10000\n"); /* a veth */
  assert_null(topology_read(test_tree.root));
  topology_fingerprint(NULL, id);
  assert_string_equal(id, "");
}

static void read_recorded(struct outcome *outcome) {
  char *text = topology_read("tests/data/sysfs/alibaba");
  outcome->error = text ? 0 : -ENOMEM;
  outcome->is_told = true; /* by the result */
  free(text);
}

TOPOLOGY_TEST(failing_calls_leave_it_unknown) {
  static const struct entry_point entry = { .name = "topology_read", .run = read_recorded };
  assert_true(each_failure_of_all(&entry) > 0);
}

TOPOLOGY_TEST(users_word_comes_first) {
  char id[TOPOLOGY_ID_MAX];
  log_capture_start();
  char root[] = "STRATUS_SYSFS_ROOT=tests/data/sysfs/aws";
  char word[] = "STRATUS_TOPOLOGY=0123456789ab";
  param_load((char *[]){ root, word, NULL });
  topology_identify(id);
  assert_string_equal(id, "0123456789ab");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  char bad[] = "STRATUS_TOPOLOGY=0123456789AB";
  param_load((char *[]){ root, bad, NULL });
  topology_identify(id);
  assert_string_equal(id, "43d74c2872d9");
  assert_int_equal(log_capture_find("STRATUS_TOPOLOGY=0123456789AB is ignored"), 1);
  log_capture_stop();
}

TOPOLOGY_TEST(only_fingerprints_are_fingerprints) {
  assert_true(topology_is_id("0123456789ab", 12));
  assert_false(topology_is_id("0123456789abc", 13));
  assert_false(topology_is_id("0123456789a", 11));
  assert_false(topology_is_id("0123456789ag", 12));
  assert_false(topology_is_id("01234\0006789ab", 12));
  assert_false(topology_is_id("", 0));
}

UNIT_MAIN(NULL, NULL)
