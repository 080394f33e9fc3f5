/* SPDX-License-Identifier: Apache-2.0 */
/* Detects cloud and hardware from DMI, PCI and network devices in sysfs. */
#include "common/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/pci.h"
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
  { "sys_vendor", "Amazon EC2", MACHINE_CLOUD_AWS },
  { "product_name", "Google", MACHINE_CLOUD_GCP },
  { "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", MACHINE_CLOUD_AZURE },
  { "product_name", "Alibaba Cloud ECS", MACHINE_CLOUD_ALIBABA },
  { "sys_vendor", "Alibaba Cloud", MACHINE_CLOUD_ALIBABA },
  { "chassis_asset_tag", "OracleCloud.com", MACHINE_CLOUD_OCI },
  { "sys_vendor", "Tencent Cloud", MACHINE_CLOUD_TENCENT },
};

/* Copies, truncating. */
static void copy_text(char *to, size_t to_bytes, const char *from) {
  size_t length = strnlen(from, to_bytes - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

static void read_attribute(const char *root, const char *attribute, char text[MACHINE_TEXT_MAX]) {
  if (sysfs_read_text(root, text, MACHINE_TEXT_MAX, "sys/class/dmi/id/%s", attribute) < 0) {
    text[0] = '\0';
  }
}

static void read_cloud(const char *root, struct machine *machine) {
  read_attribute(root, "sys_vendor", machine->vendor);
  read_attribute(root, "product_name", machine->product);
  for (size_t i = 0; i < sizeof dmi_signs / sizeof dmi_signs[0]; i++) {
    char text[MACHINE_TEXT_MAX];
    read_attribute(root, dmi_signs[i].attribute, text);
    if (strncmp(text, dmi_signs[i].prefix, strlen(dmi_signs[i].prefix)) == 0) {
      machine->cloud = dmi_signs[i].cloud;
      break;
    }
  }
  /* On AWS the product is the instance type, as in "p4d.24xlarge"; elsewhere it is the same on all
   * machines of the cloud. */
  if (machine->cloud == MACHINE_CLOUD_AWS && strchr(machine->product, '.')) {
    memcpy(machine->instance_type, machine->product, sizeof machine->instance_type);
    machine->type_origin = MACHINE_TYPE_FROM_DMI;
  }
}

static uint32_t read_count(const char *root, const char *path) {
  int count = sysfs_read_list_count(root, "%s", path);
  return count > 0 ? (uint32_t)count : 0;
}

/* "1d0f:ec20"; leaves the id alone if `device` (a path below the root) is not on PCI. */
static bool read_pci_id(const char *root, const char *device, char id[PCI_ID_MAX]) {
  struct pci_function function;
  bool is_on_pci = pci_read(root, device, &function);
  if (is_on_pci) {
    pci_format_id(&function, id);
  }
  return is_on_pci;
}

/* ---- GPUs ---- */

/* The "Model:" line that NVIDIA's driver writes for each GPU. */
static void read_gpu_model(const char *root, const char *address, char model[MACHINE_TEXT_MAX]) {
  char text[SYSFS_TEXT_MAX];
  if (sysfs_read_text(root, text, sizeof text, "proc/driver/nvidia/gpus/%s/information", address) <
      0) {
    return;
  }
  char *rest = text;
  for (char *line; (line = strsep(&rest, "\n"));) {
    static const char key[] = "Model:";
    if (strncmp(line, key, sizeof key - 1) == 0) {
      line += sizeof key - 1;
      line += strspn(line, " \t");
      copy_text(model, MACHINE_TEXT_MAX, line);
      return;
    }
  }
}

static void read_gpus(const char *root, struct machine *machine) {
  struct sysfs_list devices;
  if (sysfs_list(root, &devices, "sys/bus/pci/devices") < 0) {
    return;
  }
  for (size_t i = 0; i < devices.count; i++) {
    char device[SYSFS_PATH_MAX];
    struct pci_function function;
    snprintf(device, sizeof device, "sys/bus/pci/devices/%s", devices.entries[i]->d_name);
    if (!pci_read(root, device, &function) || !pci_is_gpu(&function)) {
      continue;
    }
    if (machine->gpu_count++ == 0) {
      pci_format_id(&function, machine->gpu_pci_id);
      read_gpu_model(root, devices.entries[i]->d_name, machine->gpu_model);
    }
  }
  sysfs_list_free(&devices);
}

/* ---- NICs ---- */

static void read_nic(const char *root, const char *name, struct machine_nic *nic) {
  char path[SYSFS_PATH_MAX];
  int64_t speed;
  copy_text(nic->name, sizeof nic->name, name);
  snprintf(path, sizeof path, "sys/class/net/%s/device", name);
  if (!read_pci_id(root, path, nic->pci_id)) {
    /* virtio: the network device hangs below a virtio device, which hangs below the PCI one. */
    snprintf(path, sizeof path, "sys/class/net/%s/device/..", name);
    read_pci_id(root, path, nic->pci_id);
  }
  sysfs_read_driver(root, nic->driver, sizeof nic->driver, "sys/class/net/%s/device", name);
  /* -1 or an error: no link, or a driver that does not know. */
  if (sysfs_read_int(root, &speed, "sys/class/net/%s/speed", name) == 0 && speed > 0 &&
      speed <= UINT32_MAX) {
    nic->speed_mbps = (uint32_t)speed;
  }
}

static void read_nics(const char *root, struct machine *machine) {
  struct sysfs_list interfaces;
  if (sysfs_list(root, &interfaces, "sys/class/net") < 0) {
    return;
  }
  for (size_t i = 0; i < interfaces.count && machine->nic_count < MACHINE_NICS_MAX; i++) {
    if (sysfs_exists(root, "sys/class/net/%s/device", interfaces.entries[i]->d_name)) {
      read_nic(root, interfaces.entries[i]->d_name, &machine->nics[machine->nic_count++]);
    }
  }
  sysfs_list_free(&interfaces);
}

void machine_read(const char *root, struct machine *machine) {
  *machine = (struct machine){ 0 };
  read_cloud(root, machine);
  machine->cpu_count = read_count(root, "sys/devices/system/cpu/online");
  machine->numa_count = read_count(root, "sys/devices/system/node/online");
  read_gpus(root, machine);
  read_nics(root, machine);
}

uint32_t machine_nic_mbps(const struct machine *machine) {
  uint32_t fastest = 0;
  for (uint32_t i = 0; i < machine->nic_count; i++) {
    if (machine->nics[i].speed_mbps > fastest) {
      fastest = machine->nics[i].speed_mbps;
    }
  }
  return fastest;
}
