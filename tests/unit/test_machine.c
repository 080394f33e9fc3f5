/* SPDX-License-Identifier: Apache-2.0 */
/* The invented machines of tests/data/machines, and machines that tell little. */
#include "common/machine.h"

#include <stdio.h>
#include <string.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct machine machine;

UNIT_TEST(clouds_are_known_by_their_firmware) {
  static const struct {
    const char *name;
    const char *cloud, *instance_type, *gpu;
    uint32_t gpus, nics;
  } cases[] = {
    { "aws-p4d", "aws", "p4d.24xlarge", "10de:20b0", 8, 2 },
    { "gcp-a2-highgpu-1g", "gcp", "", "10de:20b0", 1, 1 },
    { "azure-nc24", "azure", "", "10de:20b5", 1, 2 }, /* one is not on PCI */
    { "alibaba", "alibaba", "", "10de:20b2", 8, 1 },
    { "tencent", "tencent", "", "10de:20b0", 8, 1 },
    { "oci-h100", "oci", "", "10de:2330", 8, 17 },
    { "baremetal-roce", "unknown", "", "10de:2330", 8, 9 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char root[64];
    snprintf(root, sizeof root, "tests/data/machines/%s", cases[i].name);
    machine_read(root, &machine);
    assert_string_equal(machine.cloud, cases[i].cloud);
    assert_string_equal(machine.instance_type, cases[i].instance_type);
    assert_int_equal(machine.devices.gpus, cases[i].gpus);
    assert_string_equal(machine.devices.gpu, cases[i].gpu);
    assert_int_equal(machine.devices.nics, cases[i].nics);
  }
}

UNIT_TEST(empty_root_is_an_unknown_machine) {
  struct tree tree;
  tree_create(&tree);
  machine_read(tree.root, &machine);
  const struct machine nothing = { .cloud = machine.cloud, .type_origin = machine.type_origin };
  assert_memory_equal(&machine, &nothing, sizeof nothing);
  assert_string_equal(machine.cloud, "unknown");
  assert_string_equal(machine.type_origin, "unknown");
  tree_remove(&tree);
}

#define SETS "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "

UNIT_TEST(nonsense_is_left_out) {
  struct tree tree;
  char name[200];
  memset(name, 'v', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  tree_create(&tree);
  tree_write(&tree, "topology.xml",
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM "
             "\"hwloc2.dtd\">\n<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" "
             "gp_index=\"1\" " SETS "allowed_cpuset=\"0x1\" allowed_nodeset=\"0x1\">\n"
             "<info name=\"DMISysVendor\" value=\"%s\"/>\n"
             "<info name=\"DMIProductName\" value=\"Amazon EC2 p5.48xlarge\"/>\n"
             "<object type=\"NUMANode\" os_index=\"0\" gp_index=\"2\" " SETS "/>\n"
             "<object type=\"PU\" os_index=\"0\" gp_index=\"3\" " SETS "/>\n"
             "<object type=\"PCIDev\" gp_index=\"4\" pci_busid=\"0000:00:01.0\" pci_type=\"0403 "
             "[10de:2330] [0000:0000] 00\" pci_link_speed=\"0.000000\"/>\n" /* audio */
             "<object type=\"OSDev\" gp_index=\"5\" name=\"eth0\" osdev_type=\"2\"/>\n"
             "</object>\n</topology>\n",
             name);
  machine_read(tree.root, &machine);
  assert_string_equal(machine.cloud, "unknown");
  assert_string_equal(machine.instance_type, "");
  assert_int_equal(machine.devices.gpus, 0);
  assert_int_equal(machine.devices.nics, 1);
  tree_remove(&tree);
}

/* ---- the instance type: the user's word, and inference ---- */

static void identify(const char *root, const char *word) {
  sysfs_process_root = root;
  param_load((char *[]){ (char *)(uintptr_t)word, NULL });
  machine_identify(&machine);
}

static int stop(void **state) {
  log_capture_stop();
  param_load((char *[]){ NULL });
  return 0;
}

UNIT_TEST_WITH(the_users_word_comes_first, log_capture_set_up, stop) {
  identify("tests/data/machines/aws-p4d", "STRATUS_INSTANCE_TYPE=p5.48xlarge");
  assert_string_equal(machine.cloud, "aws");
  assert_string_equal(machine.instance_type, "p5.48xlarge");
  assert_string_equal(machine.type_origin, "user");
  identify("tests/data/machines/aws-p4d", "STRATUS_INSTANCE_TYPE=GCP:a3-megagpu-8g");
  assert_string_equal(machine.cloud, "gcp");
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  identify("tests/data/machines/aws-p4d", "STRATUS_INSTANCE_TYPE=ibm:x");
  assert_string_equal(machine.instance_type, "p4d.24xlarge");
  assert_string_equal(machine.type_origin, "DMI");
  assert_int_equal(log_capture_find("before the colon goes aws, gcp"), 1);
}

UNIT_TEST_WITH(gpus_and_nics_leave_one_possibility, log_capture_set_up, stop) {
  identify("tests/data/machines/gcp-a3-mega", NULL);
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  assert_string_equal(machine.type_origin, "GPUs and cloud");
  /* the same GPUs in nobody's cloud say nothing */
  identify("tests/data/machines/baremetal-roce", NULL);
  assert_string_equal(machine.instance_type, "");
  assert_string_equal(machine.type_origin, "unknown");
}
