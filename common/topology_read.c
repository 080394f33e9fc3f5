/* SPDX-License-Identifier: Apache-2.0 */
/* The devices: functions on PCI by their class, whoever may use them, so that the namespace that a
 * process is in changes little; speeds from the interfaces and RDMA devices that hang on them; and
 * interfaces that are not on PCI. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hca_port.h"
#include "common/pci.h"
#include "common/sysfs.h"
#include "common/topology.h"

enum { DRIVER_MAX = 64 };

struct device {
  char *path;
  int numa;
  const char *kind;        /* "gpu" */
  char id[PCI_ID_MAX];     /* empty: not on PCI */
  char driver[DRIVER_MAX]; /* of NICs */
  uint32_t mbps;           /* of NICs; 0: not told */
};

struct machine_devices {
  const char *root;
  struct device *devices;
  size_t count;
};

/* Takes over the path. */
static bool add_device(struct machine_devices *all, struct device device) {
  struct device *devices =
      device.path ? reallocarray(all->devices, all->count + 1, sizeof *devices) : NULL;
  if (!devices) {
    free(device.path);
    return false;
  }
  all->devices = devices;
  devices[all->count++] = device;
  return true;
}

/* Those in a directory, which need not be there, as long as `read` has memory. */
static bool read_all(struct machine_devices *all, const char *directory,
                     bool (*read)(struct machine_devices *all, const char *name)) {
  struct sysfs_list list;
  bool is_good = true;
  if (sysfs_list(all->root, &list, "%s", directory) < 0) {
    return true;
  }
  for (size_t i = 0; is_good && i < list.count; i++) {
    is_good = read(all, list.entries[i]->d_name);
  }
  sysfs_list_free(&list);
  return is_good;
}

/* ---- on PCI ---- */

static bool read_function(struct machine_devices *all, const char *address) {
  struct pci_function function;
  struct device found = { .numa = -1 };
  char device[SYSFS_PATH_MAX];
  snprintf(device, sizeof device, "sys/bus/pci/devices/%s", address);
  if (!pci_read(all->root, device, &function)) {
    return true;
  }
  bool is_virtual = sysfs_exists(all->root, "%s/physfn", device);
  found.kind = pci_is_gpu(&function)        ? "gpu"
               : pci_is_nvswitch(&function) ? "nvswitch"
               : pci_is_nic(&function)      ? "nic"
                                            : NULL;
  char path[SYSFS_PATH_MAX];
  int64_t node;
  if (!found.kind || is_virtual || sysfs_resolve(all->root, path, sizeof path, "%s", device) < 0) {
    return true;
  }
  pci_format_id(&function, found.id);
  if (pci_is_nic(&function)) {
    sysfs_read_driver(all->root, found.driver, sizeof found.driver, "%s", device);
  }
  if (sysfs_read_int(all->root, &node, "%s/numa_node", device) == 0 && node >= 0 &&
      node <= INT16_MAX) {
    found.numa = (int)node;
  }
  found.path = strdup(path);
  return add_device(all, found);
}

/* ---- what hangs on them ---- */

/* The function that the path leads to or through. */
static struct device *find_function(struct machine_devices *all, const char *path) {
  for (size_t i = 0; i < all->count; i++) {
    size_t length = strlen(all->devices[i].path);
    if (strncmp(path, all->devices[i].path, length) == 0 &&
        (path[length] == '/' || path[length] == '\0')) {
      return &all->devices[i];
    }
  }
  return NULL;
}

static void take_speed(struct device *device, int64_t mbps) {
  /* -1 as drivers print it, in 16 bits or 32. */
  bool is_told = mbps > 0 && mbps != UINT16_MAX && mbps < INT32_MAX;
  bool is_made_up = strncmp(device->driver, "virtio", 6) == 0;
  if (is_told && !is_made_up && mbps > device->mbps) {
    device->mbps = (uint32_t)mbps;
  }
}

static bool read_interface(struct machine_devices *all, const char *name) {
  char path[SYSFS_PATH_MAX];
  int64_t mbps;
  if (sysfs_resolve(all->root, path, sizeof path, "sys/class/net/%s/device", name) < 0) {
    return true; /* veth, bridge, loopback */
  }
  struct device *function = find_function(all, path);
  if (function) {
    if (sysfs_read_int(all->root, &mbps, "sys/class/net/%s/speed", name) == 0) {
      take_speed(function, mbps);
    }
    return true;
  }
  if (strstr(path, "/pci")) {
    return true; /* on USB, or a virtual function */
  }
  struct device found = { .path = strdup(path), .numa = -1, .kind = "nic" };
  sysfs_read_driver(all->root, found.driver, sizeof found.driver, "sys/class/net/%s/device", name);
  return add_device(all, found);
}

/* One that is down counts for nothing: its rate is not what it will have, and another boot shall
 * have the same text. */
static void read_port(struct machine_devices *all, const char *name, int port,
                      struct device *device) {
  struct hca_port facts;
  hca_port_read(all->root, name, port, &facts);
  if (facts.is_active) {
    take_speed(device, facts.mbps);
  }
}

static bool read_rdma(struct machine_devices *all, const char *name) {
  struct sysfs_list ports;
  char path[SYSFS_PATH_MAX];
  struct device *device = NULL;
  if (sysfs_resolve(all->root, path, sizeof path, "sys/class/infiniband/%s/device", name) > 0) {
    device = find_function(all, path);
  }
  if (device && sysfs_list(all->root, &ports, "sys/class/infiniband/%s/ports", name) == 0) {
    for (size_t i = 0; i < ports.count; i++) {
      read_port(all, name, atoi(ports.entries[i]->d_name), device);
    }
    sysfs_list_free(&ports);
  }
  return true;
}

/* ---- all of it ---- */

/* Without a link a NIC tells no speed, or another time another one: it has that of its kind. */
static uint32_t speed_of(const struct machine_devices *all, const struct device *device) {
  uint32_t mbps = device->mbps;
  for (size_t i = 0; device->mbps == 0 && i < all->count; i++) {
    const struct device *other = &all->devices[i];
    if (strcmp(other->id, device->id) == 0 && strcmp(other->driver, device->driver) == 0 &&
        other->mbps > mbps) {
      mbps = other->mbps;
    }
  }
  return mbps;
}

static char *describe(const struct machine_devices *all, const struct device *device) {
  char text[32 + PCI_ID_MAX + DRIVER_MAX], speed[16] = "";
  uint32_t mbps = speed_of(all, device);
  if (mbps > 0) {
    snprintf(speed, sizeof speed, " %" PRIu32, mbps);
  }
  snprintf(text, sizeof text, "%s%s%s%s%s%s", device->kind, device->id[0] ? " " : "", device->id,
           device->driver[0] ? " " : "", device->driver, speed);
  return strdup(text);
}

static int count_numa(const char *root) {
  /* Memory of GPUs and CXL comes as nodes, too, some of it with a driver. */
  int count = sysfs_read_list_count(root, "sys/devices/system/node/has_cpu");
  return count > 0 ? count : sysfs_read_list_count(root, "sys/devices/system/node/online");
}

char *topology_read(const char *root) {
  struct machine_devices all = { .root = root };
  struct topology_device *devices = NULL;
  bool is_good = read_all(&all, "sys/bus/pci/devices", read_function) &&
                 read_all(&all, "sys/class/net", read_interface) &&
                 read_all(&all, "sys/class/infiniband", read_rdma) && all.count > 0;
  if (is_good) {
    devices = calloc(all.count, sizeof *devices);
    is_good = devices;
  }
  for (size_t i = 0; is_good && i < all.count; i++) {
    devices[i] = (struct topology_device){
      .path = all.devices[i].path,
      .text = describe(&all, &all.devices[i]),
      .numa = all.devices[i].numa,
    };
    is_good = devices[i].text;
  }
  char *text = is_good ? topology_format(devices, all.count, count_numa(root)) : NULL;
  for (size_t i = 0; i < all.count; i++) {
    free(devices ? devices[i].text : NULL);
    free(all.devices[i].path);
  }
  free(devices);
  free(all.devices);
  return text;
}
