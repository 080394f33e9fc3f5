/* SPDX-License-Identifier: Apache-2.0 */
/* The device table, against made-up interfaces and a made-up sysfs. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/plugin/device.h"
#include "net_plugin/plugin/nic_facts.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define PCI "sys/devices/pci0000:00"

/* An interface below this directory of sys/devices, and the link to it. */
static void make_interface(const char *directory, const char *name, const char *speed) {
  char path[256], target[256];
  snprintf(path, sizeof(path), "sys/devices/%s/net/%s/speed", directory, name);
  tree_write(&test_tree, path, "%s\n", speed);
  snprintf(path, sizeof(path), "sys/class/net/%s", name);
  snprintf(target, sizeof(target), "../../devices/%s/net/%s", directory, name);
  tree_link(&test_tree, path, target);
}

/* One of a device. */
static void make_nic(const char *directory, const char *name, const char *speed) {
  char path[256];
  make_interface(directory, name, speed);
  snprintf(path, sizeof(path), "sys/devices/%s/net/%s/device", directory, name);
  tree_link(&test_tree, path, "../..");
}

static void make_sysfs(void) {
  char here[TREE_PATH_MAX];
  assert_non_null(realpath("tests/data/machines/aws-p4d/topology.xml", here));
  tree_link(&test_tree, "topology.xml", here);
  /* eth0: a real NIC at 25 Gb/s */
  make_nic("pci0000:00/0000:00:05.0", "eth0", "25000");
  tree_link(&test_tree, PCI "/0000:00:05.0/driver", "../../../bus/pci/drivers/ena");
  tree_make_directory(&test_tree, "sys/bus/pci/drivers/ena");
  /* eth1: virtio that claims 10 Gb/s; the NIC is a child of its PCI function */
  make_nic("pci0000:00/0000:00:06.0/virtio2", "eth1", "10000");
  tree_make_directory(&test_tree, "sys/bus/virtio/drivers/virtio_net");
  tree_link(&test_tree, PCI "/0000:00:06.0/virtio2/driver",
            "../../../../bus/virtio/drivers/virtio_net");
  /* eth2: a real NIC whose driver does not know */
  make_nic("pci0000:00/0000:01:00.1", "eth2", "-1");
  /* veth0 claims 10 Gb/s; bond0 is over eth0 and as truthful; vlan1 is over veth0 and is not */
  make_interface("virtual", "veth0", "10000");
  make_interface("virtual", "bond0", "50000");
  tree_link(&test_tree, "sys/devices/virtual/net/bond0/lower_eth0",
            "../../../pci0000:00/0000:00:05.0/net/eth0");
  make_interface("virtual", "vlan1", "10000");
  tree_link(&test_tree, "sys/devices/virtual/net/vlan1/lower_veth0", "../veth0");
}

static int set_up(void **context) {
  test_tree_create(context);
  make_sysfs();
  return 0;
}

/* ---- helpers ---- */

static struct device_table table;
static const char *merge_nics = ""; /* for discover() */

static void discover(const char *names, const char *speed, const struct profile *profile) {
  struct interface list[16];
  size_t count = 0;
  while (*names) {
    size_t length = strcspn(names, " ");
    list[count] = (struct interface){ .flags = IFF_RUNNING,
                                      .hardware = { 2, 0, 0, 0, 0, (uint8_t)(5 + 3 * count) },
                                      .verdict = INTERFACE_CHOSEN };
    snprintf(list[count].nic.name, sizeof(list[count].nic.name), "%.*s", (int)length, names);
    list[count++].nic.address.ss_family = AF_INET;
    names += length + (names[length] == ' ');
  }
  struct device_settings settings = {
    .sysfs_root = test_tree.root, .speed_mbps = speed, .merge_nics = merge_nics, .profile = profile
  };
  device_table_discover(&table, list, count, &settings);
}

static void assert_speed(const char *name, uint32_t mbps, enum device_origin origin) {
  for (int i = 0; i < table.count; i++) {
    if (!strcmp(table.devices[i].name, name)) {
      assert_int_equal(table.devices[i].speed_mbps, mbps);
      assert_int_equal(table.devices[i].speed_origin, origin);
      assert_int_equal(table.devices[i].nics[0].speed_mbps, mbps);
      return;
    }
  }
  fail_msg("no device %s", name);
}

/* ---- facts ---- */

LOG_CAPTURE_TEST(nics_are_near_the_node_of_their_function) {
  discover("eth0 eth1 veth0", "", NULL);
  assert_int_equal(table.devices[0].nics[0].numa_node, 0);
  assert_int_equal(table.devices[1].nics[0].numa_node, 1);
  assert_int_equal(table.devices[2].nics[0].numa_node, -1);
}

LOG_CAPTURE_TEST(guids_are_of_index_and_hardware) {
  discover("eth0 veth0", "", NULL);
  assert_true(table.devices[0].guid == UINT64_C(0x0000020000000005));
  assert_true(table.devices[1].guid == UINT64_C(0x0001020000000008));
}

LOG_CAPTURE_TEST(some_drivers_tell_the_truth) {
  struct nic_facts facts;
  static const struct {
    const char *name;
    uint32_t mbps;
  } expected[] = { { "eth0", 25000 }, { "eth1", 0 },      { "eth2", 0 },
                   { "veth0", 0 },    { "bond0", 50000 }, { "vlan1", 0 } };
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
    nic_facts_read(test_tree.root, expected[i].name, &facts);
    assert_int_equal(facts.speed_mbps, expected[i].mbps);
  }
}

LOG_CAPTURE_TEST(unknown_speeds_are_no_speeds) {
  static const char *const texts[] = { "-1", "0", "65535", "4294967295", "", "fast" };
  struct nic_facts facts;
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    tree_write(&test_tree, PCI "/0000:01:00.1/net/eth2/speed", "%s", texts[i]);
    nic_facts_read(test_tree.root, "eth2", &facts);
    assert_int_equal(facts.speed_mbps, 0);
  }
  tree_write(&test_tree, PCI "/0000:01:00.1/net/eth2/speed", "-1\n");
}

/* ---- speed ---- */

LOG_CAPTURE_TEST(speed_is_from_the_first_that_knows) {
  discover("eth0 eth1", "", NULL);
  assert_int_equal(table.count, 2);
  assert_int_equal(table.physical_count, 2);
  assert_speed("eth0", 25000, DEVICE_FROM_SYSTEM);
  assert_speed("eth1", 10000, DEVICE_FROM_DEFAULT);

  struct profile profile = { .meta.id = "aws-p4d", .net = { .speed_mbps = 100000 } };
  discover("eth0 eth1", "", &profile);
  assert_speed("eth0", 100000, DEVICE_FROM_PROFILE);
  assert_string_equal(table.profile_id, "aws-p4d");

  discover("eth0 eth1", "eth1=40000", &profile);
  assert_speed("eth0", 100000, DEVICE_FROM_PROFILE);
  assert_speed("eth1", 40000, DEVICE_FROM_PARAMETER);

  discover("eth0 eth1", "12500", &profile);
  assert_speed("eth0", 12500, DEVICE_FROM_PARAMETER);
  assert_speed("eth1", 12500, DEVICE_FROM_PARAMETER);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

LOG_CAPTURE_TEST(bad_speeds_are_told) {
  static const char *const bad[] = { "fast",    "eth0=",   "=5",
                                     "eth0=0",  "eth0=-1", "10000001",
                                     "eth0=5x", "0",       "abcdefghijklmnopqrst=5" };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    log_capture_start();
    discover("eth0", bad[i], NULL);
    assert_speed("eth0", 25000, DEVICE_FROM_SYSTEM);
    assert_true(log_capture_find(bad[i]) > 0);
    assert_true(log_capture_find("1..10000000") > 0);
  }
  /* The good part of a list holds. */
  discover("eth0 eth1", "eth0=5x,eth1=7000", NULL);
  assert_speed("eth1", 7000, DEVICE_FROM_PARAMETER);
  log_capture_start();
  discover("eth0", "eth9=7000", NULL);
  assert_true(log_capture_find("eth9") > 0);
}

/* ---- fusion ---- */

LOG_CAPTURE_TEST(fused_devices_come_after_physical_ones) {
  discover("eth0 eth1 veth0", "", NULL);
  int index = -1;
  const int parts[] = { 0, 1 };
  assert_int_equal(device_table_fuse(&table, parts, 2, 4, &index), 0);
  assert_int_equal(index, 3);
  const struct device *fused = device_table_find(&table, 3);
  assert_non_null(fused);
  assert_string_equal(fused->name, "eth0+eth1");
  assert_int_equal(fused->speed_mbps, 35000);
  assert_int_equal(fused->speed_origin, DEVICE_FROM_DEFAULT);
  assert_int_equal(fused->nic_count, 2);
  assert_string_equal(fused->nics[1].name, "eth1");
  for (int i = 0; i < 3; i++) {
    assert_true(fused->guid != table.devices[i].guid);
  }

  assert_int_equal(fused->part_count, 2);
  assert_int_equal(fused->parts[0], 0);
  assert_int_equal(fused->parts[1], 1);
  assert_string_equal(fused->pci_path, "/" PCI "/0000:00:05.0");

  /* The same again is the same; another order is another device. */
  assert_int_equal(device_table_fuse(&table, parts, 2, 4, &index), 0);
  assert_int_equal(index, 3);
  const int reversed[] = { 1, 0 };
  assert_int_equal(device_table_fuse(&table, reversed, 2, 4, &index), 0);
  assert_int_equal(index, 4);

  assert_string_equal(table.devices[2].pci_path, "");
  assert_int_equal(table.devices[2].part_count, 1);
  assert_int_equal(table.devices[2].parts[0], 2);
}

LOG_CAPTURE_TEST(impossible_fusions_are_refused) {
  discover("eth0 eth1", "", NULL);
  int index = -1;
  const int pair[] = { 0, 1 };
  assert_int_equal(device_table_fuse(&table, pair, 2, 4, &index), 0);
  static const struct {
    int parts[2];
    int count;
    const char *warning;
  } bad[] = { { { 0, 0 }, 2, "with itself" }, { { 0, 2 }, 2, "physical ones are 0 to 1" },
              { { 0, 7 }, 2, "0 to 1" },      { { -1, 0 }, 2, "0 to 1" },
              { { 0, 1 }, 0, "1 to 4" },      { { 0, 1 }, 5, "1 to 4" },
              { { 0, 1 }, -3, "1 to 4" } };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    log_capture_start();
    index = 99;
    assert_int_equal(device_table_fuse(&table, bad[i].parts, bad[i].count, 4, &index), -EINVAL);
    assert_int_equal(index, 99);
    assert_true(log_capture_find(bad[i].warning) > 0);
  }
  assert_int_equal(table.count, 3);
}

/* What NCCL 2.24 and 2.25 ask for each device that is not fused. */
LOG_CAPTURE_TEST(a_single_one_is_that_device_again) {
  discover("eth0 veth0", "", NULL);
  for (int part = 0; part < 2; part++) {
    int index = -1;
    assert_int_equal(device_table_fuse(&table, &part, 1, 4, &index), 0);
    assert_int_equal(index, 2 + part);
    assert_string_equal(table.devices[index].name, table.devices[part].name);
    assert_int_equal(table.devices[index].guid, table.devices[part].guid);
    assert_int_equal(table.devices[index].parts[0], part);
  }
}

LOG_CAPTURE_TEST(eight_can_be_fused_and_the_table_has_an_end) {
  discover("a b c d e f g h", "1000", NULL);
  for (int i = 0; i < 8; i++) {
    strcpy(table.devices[i].pci_path, "/" PCI "/0000:00:05.0");
  }
  int index = -1;
  int parts[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  assert_int_equal(device_table_fuse(&table, parts, 8, 8, &index), 0);
  assert_string_equal(table.devices[index].name, "a+b+c+d+e+f+g+h");
  assert_int_equal(table.devices[index].speed_mbps, 8000);
  int rc = 0;
  for (int i = 0; i < 8 && rc == 0; i++) {
    for (int j = 0; j < 8 && rc == 0; j++) {
      int pair[] = { i, j };
      rc = i == j ? 0 : device_table_fuse(&table, pair, 2, 8, &index);
    }
  }
  assert_int_equal(rc, -ENOSPC); /* 8 + 1 + 56 is one more than the table holds */
  assert_int_equal(table.count, DEVICE_MAX);
}

/* ---- STRATUS_MERGE_NICS ---- */

static void discover_merged(const char *names, const char *merge) {
  merge_nics = merge;
  discover(names, "1000", NULL);
  merge_nics = "";
}

static void assert_names(const char *expected) {
  char names[256] = "";
  for (int i = 0; i < table.count; i++) {
    strcat(names, i ? " " : "");
    strcat(names, table.devices[i].name);
    /* What NCCL sees is a physical device like any other. */
    assert_int_equal(table.devices[i].part_count, 1);
    assert_int_equal(table.devices[i].parts[0], i);
  }
  assert_string_equal(names, expected);
  assert_int_equal(table.physical_count, table.count);
}

/* ---- one port behind two PCI links ---- */

/* As on DGX Spark: port p0 of one card as functions 0000:01:00.0 and 0002:01:00.0, p1 as .1. */
static void make_function(const char *pci, const char *name, const char *hca, const char *port,
                          const char *guid) {
  char path[256];
  make_nic(pci, name, "200000");
  if (port) {
    snprintf(path, sizeof(path), "sys/devices/%s/net/%s/phys_port_name", pci, name);
    tree_write(&test_tree, path, "%s", port);
  }
  snprintf(path, sizeof(path), "sys/devices/%s/infiniband/%s/sys_image_guid", pci, hca);
  tree_write(&test_tree, path, "%s", guid);
}

static void make_spark(void) {
  static const char guid[] = "fc4c:ea03:00f9:4230\n";
  make_function("pci0000:00/0000:00:00.0/0000:01:00.0", "enp1s0f0np0", "rocep1s0f0", "p0\n", guid);
  make_function("pci0000:00/0000:00:00.0/0000:01:00.1", "enp1s0f1np1", "rocep1s0f1", "p1\n", guid);
  make_function("pci0002:00/0002:00:00.0/0002:01:00.0", "enP2p1s0f0np0", "roceP2p1s0f0", "p0\n",
                guid);
  make_function("pci0002:00/0002:00:00.0/0002:01:00.1", "enP2p1s0f1np1", "roceP2p1s0f1", "p1\n",
                guid);
  /* Another card, one without a GUID, and virtual functions, whose driver names no port. */
  make_function("pci0003:00/0003:01:00.0", "other", "mlx5_4", "p0\n", "fc4c:ea03:00f9:9990\n");
  make_function("pci0003:00/0003:02:00.0", "none0", "mlx5_5", "p0\n", "0000:0000:0000:0000\n");
  make_function("pci0003:00/0003:03:00.0", "none1", "mlx5_6", "p0\n", "0000:0000:0000:0000\n");
  make_function("pci0003:00/0003:04:00.2", "vf0", "mlx5_7", NULL, guid);
  make_function("pci0003:00/0003:04:00.3", "vf1", "mlx5_8", NULL, guid);
}

LOG_CAPTURE_TEST(nics_of_one_port_are_merged) {
  make_spark();
  log_capture_start();
  discover("enp1s0f0np0 enp1s0f1np1 enP2p1s0f0np0 enP2p1s0f1np1", "", NULL);
  assert_names("enp1s0f0np0+enP2p1s0f0np0 enp1s0f1np1+enP2p1s0f1np1");
  /* What the port has, not twice that. */
  assert_int_equal(table.devices[0].speed_mbps, 200000);
  assert_int_equal(table.devices[0].nics[0].speed_mbps, 100000);
  assert_int_equal(table.devices[1].nics[1].speed_mbps, 100000);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  discover("enp1s0f0np0 other none0 none1 vf0 vf1", "", NULL);
  assert_names("enp1s0f0np0 other none0 none1 vf0 vf1");
  assert_speed("enp1s0f0np0", 200000, DEVICE_FROM_SYSTEM);
}

LOG_CAPTURE_TEST(the_user_may_keep_them_apart) {
  merge_nics = "none";
  discover("enp1s0f0np0 enP2p1s0f0np0", "", NULL);
  assert_names("enp1s0f0np0 enP2p1s0f0np0");
  assert_speed("enP2p1s0f0np0", 100000, DEVICE_FROM_SYSTEM);
  discover("enp1s0f0np0 enP2p1s0f0np0", "90000", NULL);
  assert_speed("enP2p1s0f0np0", 90000, DEVICE_FROM_PARAMETER);
  merge_nics = "all";
  discover("enp1s0f0np0 enp1s0f1np1 enP2p1s0f0np0 enP2p1s0f1np1", "", NULL);
  assert_names("enp1s0f0np0+enp1s0f1np1+enP2p1s0f0np0+enP2p1s0f1np1");
  assert_int_equal(table.devices[0].speed_mbps, 400000);
  merge_nics = "";
}

LOG_CAPTURE_TEST(bad_merges_are_told_and_the_rest_holds) {
  static const struct {
    const char *merge, *warning, *names;
  } bad[] = {
    { "eth0+eth9", "\"eth9\" is none of the interfaces in use", "eth0 eth1 veth0" },
    { "eth0+eth9+eth1", "in use: eth0,eth1,veth0", "eth0+eth1 veth0" },
    { "eth0+eth1,eth1+veth0", "\"eth1\" is named twice", "eth0+eth1 veth0" },
    { "eth0+eth0", "\"eth0\" is named twice", "eth0 eth1 veth0" },
    { "eth0", "\"eth0\" is alone", "eth0 eth1 veth0" },
    { "+", "\"\" is none", "eth0 eth1 veth0" },
    { ",eth0+veth0", "\"\" is none", "eth0+veth0 eth1" },
    { "eth0 eth1", "eth0+eth1,eth2+eth3", "eth0 eth1 veth0" },
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    log_capture_start();
    discover_merged("eth0 eth1 veth0", bad[i].merge);
    assert_names(bad[i].names);
    assert_true(log_capture_find(bad[i].warning) > 0);
  }
  log_capture_start();
  char many[256] = "a";
  for (int i = 0; i < 100; i++) {
    strcat(many, ",b");
  }
  discover_merged("a b", many);
  assert_names("a b");
}

/* NCCL may fuse what was merged: all interfaces count. */
LOG_CAPTURE_TEST(merged_devices_can_be_fused) {
  discover_merged("eth0 veth0 eth1 eth2", "eth0+veth0");
  const int parts[] = { 0, 1 };
  int index = -1;
  assert_int_equal(device_table_fuse(&table, parts, 2, 4, &index), 0);
  assert_int_equal(index, 3);
  assert_string_equal(table.devices[3].name, "eth0+veth0+eth1");
  assert_int_equal(table.devices[3].nic_count, 3);
  assert_int_equal(table.devices[3].part_count, 2);
  log_capture_start();
  discover_merged("a b c d e f g h eth0", "all");
  assert_names("a+b+c+d+e+f+g+h eth0");
  assert_true(log_capture_find("so these stay apart: eth0") > 0);
  discover_merged("a b c d e f g h eth0", "a+b+c+d+e+f+g+h");
  assert_int_equal(device_table_fuse(&table, parts, 2, 4, &index), -EINVAL);
  assert_true(log_capture_find("8 is the limit") > 0);
}

UNIT_MAIN(set_up, test_tree_remove)
