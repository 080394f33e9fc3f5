/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the cloud from DMI; then the instance type where DMI has none: from the user, or inferred
 * if only one type of the cloud has these GPUs. */
#include "common/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/param.h"
#include "common/sysfs.h"

static const char *const cloud_names[MACHINE_CLOUD_COUNT] = {
  [MACHINE_CLOUD_UNKNOWN] = "unknown", [MACHINE_CLOUD_AWS] = "aws",
  [MACHINE_CLOUD_GCP] = "gcp",         [MACHINE_CLOUD_AZURE] = "azure",
  [MACHINE_CLOUD_ALIBABA] = "alibaba", [MACHINE_CLOUD_OCI] = "oci",
  [MACHINE_CLOUD_TENCENT] = "tencent",
};

const char *machine_cloud_name(enum machine_cloud cloud) {
  return cloud < MACHINE_CLOUD_COUNT ? cloud_names[cloud] : cloud_names[MACHINE_CLOUD_UNKNOWN];
}

/* A DMI attribute that starts with `prefix` tells the cloud. The signs are
 * those of cloud-init (tools/ds-identify and its DataSource*.py); Tencent's, which it lacks, is
 * what dmidecode shows on a CVM instance. */
static const struct {
  const char *attribute;
  const char *prefix;
  enum machine_cloud cloud;
} dmi_signs[] = {
  { "DMISysVendor", "Amazon EC2", MACHINE_CLOUD_AWS },
  { "DMIProductName", "Google", MACHINE_CLOUD_GCP },
  { "DMIChassisAssetTag", "7783-7084-3265-9085-8269-3286-77", MACHINE_CLOUD_AZURE },
  { "DMIProductName", "Alibaba Cloud ECS", MACHINE_CLOUD_ALIBABA },
  { "DMISysVendor", "Alibaba Cloud", MACHINE_CLOUD_ALIBABA },
  { "DMIChassisAssetTag", "OracleCloud.com", MACHINE_CLOUD_OCI },
  { "DMISysVendor", "Tencent Cloud", MACHINE_CLOUD_TENCENT },
};

static void read_cloud(const char *root, struct machine *machine) {
  for (size_t i = 0; i < sizeof dmi_signs / sizeof dmi_signs[0]; i++) {
    const char *text = topology_firmware(root, dmi_signs[i].attribute);
    if (strncmp(text, dmi_signs[i].prefix, strlen(dmi_signs[i].prefix)) == 0) {
      machine->cloud = dmi_signs[i].cloud;
      break;
    }
  }
  /* On AWS the product is the instance type, as in "p4d.24xlarge"; elsewhere it is the same on all
   * machines of the cloud. */
  const char *product = topology_firmware(root, "DMIProductName");
  if (machine->cloud == MACHINE_CLOUD_AWS && strchr(product, '.')) {
    snprintf(machine->instance_type, sizeof machine->instance_type, "%s", product);
    machine->type_origin = MACHINE_TYPE_FROM_DMI;
  }
}

void machine_read(const char *root, struct machine *machine) {
  *machine = (struct machine){ 0 };
  read_cloud(root, machine);
  topology_count(root, &machine->devices);
}

/* ---- the instance type ---- */

/* The types of a cloud that have this many of this GPU; the first row that holds. Several types
 * with the same GPUs are told apart by their NICs. From the clouds' lists of machine types as of
 * 2026-08; PCI ids from pci.ids. */
static const struct {
  enum machine_cloud cloud;
  const char *gpu;
  uint32_t gpu_count, nic_count_min;
  const char *instance_type;
} known_types[] = {
  { MACHINE_CLOUD_GCP, "10de:20b0", 16, 1, "a2-megagpu-16g" },
  { MACHINE_CLOUD_GCP, "10de:20b0", 8, 1, "a2-highgpu-8g" },
  { MACHINE_CLOUD_GCP, "10de:20b0", 4, 1, "a2-highgpu-4g" },
  { MACHINE_CLOUD_GCP, "10de:20b0", 2, 1, "a2-highgpu-2g" },
  { MACHINE_CLOUD_GCP, "10de:20b0", 1, 1, "a2-highgpu-1g" },
  { MACHINE_CLOUD_GCP, "10de:20b2", 8, 1, "a2-ultragpu-8g" },
  { MACHINE_CLOUD_GCP, "10de:20b2", 4, 1, "a2-ultragpu-4g" },
  { MACHINE_CLOUD_GCP, "10de:2330", 8, 9, "a3-megagpu-8g" },
  { MACHINE_CLOUD_GCP, "10de:2330", 8, 1, "a3-highgpu-8g" },
  { MACHINE_CLOUD_GCP, "10de:2335", 8, 1, "a3-ultragpu-8g" },
  { MACHINE_CLOUD_GCP, "10de:2901", 8, 1, "a4-highgpu-8g" },
  { MACHINE_CLOUD_GCP, "10de:27b8", 8, 1, "g2-standard-96" },
  { MACHINE_CLOUD_AZURE, "10de:20b0", 8, 1, "Standard_ND96asr_v4" },
  { MACHINE_CLOUD_AZURE, "10de:20b2", 8, 1, "Standard_ND96amsr_A100_v4" },
  { MACHINE_CLOUD_AZURE, "10de:20b5", 4, 1, "Standard_NC96ads_A100_v4" },
  { MACHINE_CLOUD_AZURE, "10de:20b5", 2, 1, "Standard_NC48ads_A100_v4" },
  { MACHINE_CLOUD_AZURE, "10de:20b5", 1, 1, "Standard_NC24ads_A100_v4" },
  { MACHINE_CLOUD_AZURE, "10de:2330", 8, 1, "Standard_ND96isr_H100_v5" },
  { MACHINE_CLOUD_AZURE, "10de:2335", 8, 1, "Standard_ND96isr_H200_v5" },
  { MACHINE_CLOUD_OCI, "10de:20b0", 8, 1, "BM.GPU4.8" },
  { MACHINE_CLOUD_OCI, "10de:20b2", 8, 1, "BM.GPU.A100-v2.8" },
  { MACHINE_CLOUD_OCI, "10de:2330", 8, 1, "BM.GPU.H100.8" },
  { MACHINE_CLOUD_OCI, "10de:2335", 8, 1, "BM.GPU.H200.8" },
  { MACHINE_CLOUD_OCI, "10de:2901", 8, 1, "BM.GPU.B200.8" },
};

static void infer(struct machine *machine) {
  for (size_t i = 0; i < sizeof known_types / sizeof known_types[0]; i++) {
    if (known_types[i].cloud == machine->cloud &&
        known_types[i].gpu_count == machine->devices.gpus &&
        known_types[i].nic_count_min <= machine->devices.nics &&
        strcmp(known_types[i].gpu, machine->devices.gpu) == 0) {
      snprintf(machine->instance_type, sizeof machine->instance_type, "%s",
               known_types[i].instance_type);
      machine->type_origin = MACHINE_TYPE_INFERRED;
      return;
    }
  }
}

/* "p4d.24xlarge" or "gcp:a3-megagpu-8g". */
static bool take_users_word(struct machine *machine) {
  const char *text = param_string(PARAM_INSTANCE_TYPE);
  const char *colon = strchr(text, ':');
  if (!text[0]) {
    return false;
  }
  if (colon) {
    int cloud = MACHINE_CLOUD_COUNT - 1;
    size_t length = (size_t)(colon - text);
    while (cloud > 0 &&
           (strlen(machine_cloud_name((enum machine_cloud)cloud)) != length ||
            strncasecmp(machine_cloud_name((enum machine_cloud)cloud), text, length))) {
      cloud--;
    }
    if (cloud == MACHINE_CLOUD_UNKNOWN) {
      LOG_WARN_EVERY(SETTING_WARN_INTERVAL_NS,
                     "STRATUS_INSTANCE_TYPE=%s is ignored: before the colon goes aws, gcp, azure, "
                     "alibaba, oci or tencent",
                     text);
      return false;
    }
    machine->cloud = (enum machine_cloud)cloud;
    text = colon + 1;
  }
  snprintf(machine->instance_type, sizeof machine->instance_type, "%s", text);
  machine->type_origin = MACHINE_TYPE_FROM_USER;
  return true;
}

void machine_identify(struct machine *machine) {
  machine_read(sysfs_process_root, machine);
  topology_identify(machine->topology);
  if (take_users_word(machine) || machine->instance_type[0]) {
    return;
  }
  infer(machine);
}

const char *machine_type_origin_name(enum machine_type_origin origin) {
  static const char *const names[] = {
    [MACHINE_TYPE_UNKNOWN] = "unknown",
    [MACHINE_TYPE_FROM_USER] = "user",
    [MACHINE_TYPE_FROM_DMI] = "DMI",
    [MACHINE_TYPE_INFERRED] = "GPUs and cloud",
  };
  return names[origin];
}
