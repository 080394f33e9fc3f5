/* SPDX-License-Identifier: Apache-2.0 */
/* The invented machines of tests/data/machines: what each is taken for, and the profile that is
 * installed for it; the user's word; machines that tell little. */
#include "common/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "common/profile_match.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct machine machine;

/* Of tests/data/machines; with this variable of ours, or NULL. */
static void identify(const char *name, const char *variable) {
  static char root[128];
  snprintf(root, sizeof root, "tests/data/machines/%s", name);
  sysfs_process_root = root;
  param_load((char *[]){ (char *)(uintptr_t)variable, NULL });
  machine_identify(&machine);
}

static int stop(void **state) {
  log_capture_stop();
  param_load((char *[]){ NULL });
  return 0;
}

#define MACHINE_TEST(name) UNIT_TEST_WITH(name, log_capture_set_up, stop)

/* "none": nothing is published of such machines. */
static const char *find_profile(void) {
  static const char *const directories[] = { "tuner_plugin/profiles", NULL };
  const struct profile_search search = { .directories = directories };
  static char id[PROFILE_ID_MAX];
  char path[PROFILE_PATH_MAX];
  struct profile profile;
  struct profile_error error;
  int result = profile_match_find(&search, &machine, &profile, path, &error);
  snprintf(id, sizeof id, "%s", result == 0 ? profile.meta.id : "none");
  profile_free(&profile);
  return id;
}

#define SWITCH "2 x switch(2 x gpu 10de:2330, 2 x nic 15b3:1021 mlx5_core)"
#define SWITCHES "numa 2: node[" SWITCH "], node[nic 8086:1563 ixgbe, " SWITCH "]"

MACHINE_TEST(every_machine_is_known) {
  static const struct {
    const char *name, *cloud, *instance_type, *type_origin, *profile, *gpu;
    uint32_t gpus, nics;
    const char *id, *text; /* of its topology */
  } cases[] = {
    { "aws-p4d", "aws", "p4d.24xlarge", "DMI", "aws-p4d", "10de:20b0", 8, 2, "90542e82ec6a",
      "numa 2: 2 x node[4 x gpu 10de:20b0, nic 1d0f:ec20 ena]" },
    { "gcp-a2-highgpu-1g", "gcp", "a2-highgpu-1g", "GPUs and cloud", "none", "10de:20b0", 1, 1,
      "9b3588bfbfa0", "numa 1: node[root(gpu 10de:20b0, nic 1ae0:0042 gvnic)]" },
    { "azure-nc24", "azure", "Standard_NC24ads_A100_v4", "GPUs and cloud", "none", "10de:20b5", 1,
      2, /* one is not on PCI */
      "da951061c70d",
      "numa 2: node[gpu 10de:20b5, nic 15b3:101a mlx5_core], unplaced[nic hv_netvsc]" },
    { "gcp-a3-mega", "gcp", "a3-megagpu-8g", "GPUs and cloud", "gcp-a3-mega", "10de:2330", 8, 9,
      "68cb936f6a68", "numa 2: unplaced[8 x gpu 10de:2330, 9 x nic 1ae0:0042 gve]" },
    { "gcp-a3-high", "gcp", "a3-highgpu-8g", "GPUs and cloud", "none", "10de:2330", 8, 5,
      "2d5d13ce1d77", "numa 2: unplaced[8 x gpu 10de:2330, 5 x nic 1ae0:0042 gve]" },
    { "azure-nd-h100", "azure", "Standard_ND96isr_H100_v5", "GPUs and cloud", "none", "10de:2330",
      8, 1, "1cadad5d990d", "numa 2: unplaced[8 x gpu 10de:2330, nic 15b3:101a mlx5_core]" },
    { "alibaba", "alibaba", "", "unknown", "none", "10de:20b2", 8, 1, "c6e9e40f8e6c",
      "numa 2: unplaced[8 x gpu 10de:20b2, nic 1af4:1041 virtio_net]" },
    { "oci-h100", "oci", "BM.GPU.H100.8", "GPUs and cloud", "none", "10de:2330", 8, 17,
      "f3d1c9d4e856",
      "numa 2: unplaced[8 x gpu 10de:2330, nic 15b3:101d mlx5_core, "
      "16 x nic 15b3:1021 mlx5_core]" },
    { "tencent", "tencent", "", "unknown", "none", "10de:20b0", 8, 1, "c7ab8352fa2f",
      "numa 2: unplaced[8 x gpu 10de:20b0, nic 1af4:1000 virtio_net]" },
    { "baremetal-roce", "unknown", "", "unknown", "none", "10de:2330", 8, 9, "71c8069f5270",
      "numa 2: unplaced[8 x gpu 10de:2330, 9 x nic 15b3:1021 mlx5_core]" },
    /* What boots number, and memory that comes and goes, make no other machine. */
    { "switches", "unknown", "", "unknown", "none", "10de:2330", 8, 9, "4818c16352b2", SWITCHES },
    { "switches-rebooted", "unknown", "", "unknown", "none", "10de:2330", 8, 9, "4818c16352b2",
      SWITCHES },
    /* Amazon's product without Amazon, and NVIDIA's coprocessor that is no GPU. */
    { "nonsense", "unknown", "", "unknown", "none", "", 0, 1, "4526d8bd49b9", "numa 1: node[nic]" },
    { "bare", "unknown", "", "unknown", "none", "", 0, 0, "", NULL },
    { "no-such-machine", "unknown", "", "unknown", "none", "", 0, 0, "", NULL },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    identify(cases[i].name, NULL);
    assert_string_equal(machine.cloud, cases[i].cloud);
    assert_string_equal(machine.instance_type, cases[i].instance_type);
    assert_string_equal(machine.type_origin, cases[i].type_origin);
    assert_string_equal(find_profile(), cases[i].profile);
    assert_string_equal(machine.devices.gpu, cases[i].gpu);
    assert_int_equal(machine.devices.gpus, cases[i].gpus);
    assert_int_equal(machine.devices.nics, cases[i].nics);
    assert_string_equal(machine.topology, cases[i].id);
    char *text = topology_read(sysfs_process_root);
    assert_string_equal(text ? text : "none", cases[i].text ? cases[i].text : "none");
    free(text);
  }
}

MACHINE_TEST(the_users_word_comes_first) {
  identify("aws-p4d", "STRATUS_INSTANCE_TYPE=p5.48xlarge");
  assert_string_equal(machine.cloud, "aws");
  assert_string_equal(machine.instance_type, "p5.48xlarge");
  assert_string_equal(machine.type_origin, "user");
  identify("aws-p4d", "STRATUS_INSTANCE_TYPE=GCP:a3-megagpu-8g");
  assert_string_equal(machine.cloud, "gcp");
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  identify("aws-p4d", "STRATUS_INSTANCE_TYPE=ibm:x");
  assert_string_equal(machine.instance_type, "p4d.24xlarge");
  assert_int_equal(log_capture_find("before the colon goes aws, gcp"), 1);
  identify("aws-p4d", "STRATUS_TOPOLOGY=0123456789ab");
  assert_string_equal(machine.topology, "0123456789ab");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  identify("aws-p4d", "STRATUS_TOPOLOGY=0123456789AB");
  assert_string_equal(machine.topology, "90542e82ec6a");
  assert_int_equal(log_capture_find("STRATUS_TOPOLOGY=0123456789AB is ignored"), 1);
}
