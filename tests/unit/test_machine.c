/* SPDX-License-Identifier: Apache-2.0 */
/* The invented machines of tests/data/sysfs, and machines that tell little. */
#include "common/machine.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct machine machine;

UNIT_TEST(aws_tells_the_instance_type) {
  machine_read("tests/data/sysfs/aws", &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_AWS);
  assert_string_equal(machine.instance_type, "p4d.24xlarge");
  assert_int_equal(machine.gpu_count, 8);
  assert_string_equal(machine.gpu_pci_id, "10de:20b0");
  assert_int_equal(machine.nic_count, 2);
}

UNIT_TEST(gcp_is_known_by_its_product) {
  machine_read("tests/data/sysfs/gcp", &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_GCP);
  assert_string_equal(machine.instance_type, "");
  assert_int_equal(machine.gpu_count, 1);
}

UNIT_TEST(azure_is_known_and_has_nics_that_are_not_on_pci) {
  machine_read("tests/data/sysfs/azure", &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_AZURE);
  assert_int_equal(machine.nic_count, 2);
}

UNIT_TEST(alibaba_and_tencent_are_known) {
  machine_read("tests/data/sysfs/alibaba", &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_ALIBABA);
  assert_int_equal(machine.nic_count, 1);
  machine_read("tests/data/sysfs/tencent", &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_TENCENT);
}

UNIT_TEST(oci_is_known_by_its_asset_tag) {
  machine_read("tests/data/sysfs/oci", &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_OCI);
  assert_int_equal(machine.gpu_count, 0);
  assert_string_equal(machine.gpu_pci_id, "");
}

UNIT_TEST(empty_root_is_an_unknown_machine) {
  struct tree tree;
  tree_create(&tree);
  machine_read(tree.root, &machine);
  const struct machine nothing = { 0 };
  assert_memory_equal(&machine, &nothing, sizeof nothing);
  assert_string_equal(machine_cloud_name(machine.cloud), "unknown");
  tree_remove(&tree);
}

UNIT_TEST(nonsense_is_left_out) {
  struct tree tree;
  char name[200];
  memset(name, 'v', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  tree_create(&tree);
  tree_write(&tree, "sys/class/dmi/id/sys_vendor", "%s\n", name);
  tree_write(&tree, "sys/class/dmi/id/product_name", "Amazon EC2 p5.48xlarge\n");
  tree_write(&tree, "sys/devices/system/node/online", "all\n");
  tree_write(&tree, "sys/bus/pci/devices/0000:00:01.0/vendor", "NVIDIA\n");
  tree_write(&tree, "sys/bus/pci/devices/0000:00:02.0/vendor", "0x10de\n"); /* no class */
  tree_write(&tree, "sys/bus/pci/devices/0000:00:03.0/vendor", "0x10de\n");
  tree_write(&tree, "sys/bus/pci/devices/0000:00:03.0/class", "0x040300\n"); /* audio */
  tree_write(&tree, "sys/class/net/eth0/device/vendor", "0x123456\n");
  tree_write(&tree, "sys/class/net/eth0/device/device", "0x1\n");
  tree_write(&tree, "sys/class/net/eth0/device/class", "0x020000\n");
  tree_write(&tree, "sys/class/net/eth0/speed", "99999999999\n");
  machine_read(tree.root, &machine);
  assert_int_equal(machine.cloud, MACHINE_CLOUD_UNKNOWN);
  assert_string_equal(machine.instance_type, "");
  assert_int_equal(machine.gpu_count, 0);
  assert_int_equal(machine.nic_count, 1);
  tree_remove(&tree);
}

UNIT_MAIN(NULL, NULL)
