/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the cloud from DMI; then the instance type where DMI has none: from the user, or inferred
 * if only one type of the cloud has these GPUs. */
#include "common/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/param.h"
#include "common/sysfs.h"

/* A DMI attribute that starts with `prefix` tells the cloud. The signs are
 * those of cloud-init (tools/ds-identify and its DataSource*.py); Tencent's, which it lacks, is
 * what dmidecode shows on a CVM instance. */
static const struct {
  const char *attribute;
  const char *prefix;
  const char *cloud;
} dmi_signs[] = {
  { "DMISysVendor", "Amazon EC2", "aws" },
  { "DMIProductName", "Google", "gcp" },
  { "DMIChassisAssetTag", "7783-7084-3265-9085-8269-3286-77", "azure" },
  { "DMIProductName", "Alibaba Cloud ECS", "alibaba" },
  { "DMISysVendor", "Alibaba Cloud", "alibaba" },
  { "DMIChassisAssetTag", "OracleCloud.com", "oci" },
  { "DMISysVendor", "Tencent Cloud", "tencent" },
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
  if (strcmp(machine->cloud, "aws") == 0 && strchr(product, '.')) {
    snprintf(machine->instance_type, sizeof machine->instance_type, "%s", product);
    machine->type_origin = "DMI";
  }
}

void machine_read(const char *root, struct machine *machine) {
  *machine = (struct machine){ .cloud = "unknown", .type_origin = "unknown" };
  read_cloud(root, machine);
  topology_count(root, &machine->devices);
}

/* ---- the instance type ---- */

/* The types of a cloud that have this many of this GPU; the first row that holds. Several types
 * with the same GPUs are told apart by their NICs. From the clouds' lists of machine types as of
 * 2026-08; PCI ids from pci.ids. */
static const struct {
  const char *cloud;
  const char *gpu;
  uint32_t gpu_count, nic_count_min;
  const char *instance_type;
} known_types[] = {
  { "gcp", "10de:20b0", 16, 1, "a2-megagpu-16g" },
  { "gcp", "10de:20b0", 8, 1, "a2-highgpu-8g" },
  { "gcp", "10de:20b0", 4, 1, "a2-highgpu-4g" },
  { "gcp", "10de:20b0", 2, 1, "a2-highgpu-2g" },
  { "gcp", "10de:20b0", 1, 1, "a2-highgpu-1g" },
  { "gcp", "10de:20b2", 8, 1, "a2-ultragpu-8g" },
  { "gcp", "10de:20b2", 4, 1, "a2-ultragpu-4g" },
  { "gcp", "10de:2330", 8, 9, "a3-megagpu-8g" },
  { "gcp", "10de:2330", 8, 1, "a3-highgpu-8g" },
  { "gcp", "10de:2335", 8, 1, "a3-ultragpu-8g" },
  { "gcp", "10de:2901", 8, 1, "a4-highgpu-8g" },
  { "gcp", "10de:27b8", 8, 1, "g2-standard-96" },
  { "azure", "10de:20b0", 8, 1, "Standard_ND96asr_v4" },
  { "azure", "10de:20b2", 8, 1, "Standard_ND96amsr_A100_v4" },
  { "azure", "10de:20b5", 4, 1, "Standard_NC96ads_A100_v4" },
  { "azure", "10de:20b5", 2, 1, "Standard_NC48ads_A100_v4" },
  { "azure", "10de:20b5", 1, 1, "Standard_NC24ads_A100_v4" },
  { "azure", "10de:2330", 8, 1, "Standard_ND96isr_H100_v5" },
  { "azure", "10de:2335", 8, 1, "Standard_ND96isr_H200_v5" },
  { "oci", "10de:20b0", 8, 1, "BM.GPU4.8" },
  { "oci", "10de:20b2", 8, 1, "BM.GPU.A100-v2.8" },
  { "oci", "10de:2330", 8, 1, "BM.GPU.H100.8" },
  { "oci", "10de:2335", 8, 1, "BM.GPU.H200.8" },
  { "oci", "10de:2901", 8, 1, "BM.GPU.B200.8" },
};

static void infer(struct machine *machine) {
  for (size_t i = 0; i < sizeof known_types / sizeof known_types[0]; i++) {
    if (strcmp(known_types[i].cloud, machine->cloud) == 0 &&
        known_types[i].gpu_count == machine->devices.gpus &&
        known_types[i].nic_count_min <= machine->devices.nics &&
        strcmp(known_types[i].gpu, machine->devices.gpu) == 0) {
      snprintf(machine->instance_type, sizeof machine->instance_type, "%s",
               known_types[i].instance_type);
      machine->type_origin = "GPUs and cloud";
      return;
    }
  }
}

/* NULL: there is none of this name. */
static const char *find_cloud(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof dmi_signs / sizeof dmi_signs[0]; i++) {
    if (strlen(dmi_signs[i].cloud) == length &&
        strncasecmp(dmi_signs[i].cloud, name, length) == 0) {
      return dmi_signs[i].cloud;
    }
  }
  return NULL;
}

/* "p4d.24xlarge" or "gcp:a3-megagpu-8g". */
static bool take_users_word(struct machine *machine) {
  const char *text = param_string(PARAM_INSTANCE_TYPE);
  const char *colon = strchr(text, ':');
  if (!text[0]) {
    return false;
  }
  if (colon) {
    const char *cloud = find_cloud(text, (size_t)(colon - text));
    if (!cloud) {
      LOG_WARN_EVERY(SETTING_WARN_INTERVAL_NS,
                     "STRATUS_INSTANCE_TYPE=%s is ignored: before the colon goes aws, gcp, azure, "
                     "alibaba, oci or tencent",
                     text);
      return false;
    }
    machine->cloud = cloud;
    text = colon + 1;
  }
  snprintf(machine->instance_type, sizeof machine->instance_type, "%s", text);
  machine->type_origin = "user";
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
