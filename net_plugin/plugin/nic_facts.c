/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from /sys/class/net/<name>. */
#include "net_plugin/plugin/nic_facts.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/sysfs.h"

/* "0000:00:05.0"; domains may have more than four digits. */
static bool is_pci_address(const char *text) {
  unsigned domain, bus, device, function;
  int end = 0;
  int found = sscanf(text, "%x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end);
  return found == 4 && text[end] == '\0';
}

/* The PCI function that the interface is on. A virtio NIC is a device below its PCI function;
 * NCCL's own socket transport reports the inner one, which is not on the PCI bus, and so NCCL
 * places the NIC nowhere (ncclTopoFillNet, src/graph/xml.cc:1098-1161 at v2.30.7). */
static void read_pci_path(const char *root, const char *name, char path[NIC_FACTS_PATH_MAX]) {
  path[0] = '\0';
  char resolved[SYSFS_PATH_MAX];
  if (sysfs_resolve(root, resolved, sizeof(resolved), "sys/class/net/%s/device", name) < 0) {
    return;
  }
  char *slash;
  while ((slash = strrchr(resolved, '/')) != NULL) {
    if (is_pci_address(slash + 1)) {
      if (strlen(resolved) < NIC_FACTS_PATH_MAX) {
        strcpy(path, resolved);
      }
      return;
    }
    *slash = '\0';
  }
}

/* What virtio_net reports was set by hand in the guest or made up by the host. */
static bool has_untruthful_driver(const char *root, const char *name) {
  char driver[32];
  sysfs_read_driver(root, driver, sizeof(driver), "sys/class/net/%s/device", name);
  return !strcmp(driver, "virtio_net");
}

static uint32_t read_speed(const char *root, const char *name, int depth);

/* An interface without a device of its own (bond, VLAN, bridge, macvlan) is as truthful as those
 * below it. Without any it is a veth, which claims 10000, a tun or a dummy. */
static bool has_truthful_lower(const char *root, const char *name, int depth) {
  glob_t lower;
  size_t count = sysfs_find(root, &lower, "sys/class/net/%s/lower_*", name), truthful = 0;
  while (depth > 0 && truthful < count &&
         read_speed(root, sysfs_name(lower.gl_pathv[truthful]) + strlen("lower_"), depth - 1) > 0) {
    truthful++;
  }
  globfree(&lower);
  return count > 0 && truthful == count;
}

static uint32_t read_speed(const char *root, const char *name, int depth) {
  int64_t mbps;
  if (sysfs_read_int(root, &mbps, "sys/class/net/%s/speed", name) < 0) {
    return 0;
  }
  /* -1 as it is printed by kernels old and new, and in 16 bits by some drivers. */
  if (mbps <= 0 || mbps == 65535 || mbps >= INT32_MAX) {
    return 0;
  }
  bool is_truthful = sysfs_exists(root, "sys/class/net/%s/device", name)
                         ? !has_untruthful_driver(root, name)
                         : has_truthful_lower(root, name, depth);
  return is_truthful ? (uint32_t)mbps : 0;
}

/* Virtual functions have no port of their own: their driver has no phys_port_name. */
static void read_port(const char *root, const char *name, char port[NIC_FACTS_PORT_MAX]) {
  char port_name[16], guid[SYSFS_TEXT_MAX];
  glob_t hcas;
  port[0] = '\0';
  size_t count = sysfs_find(root, &hcas, "sys/class/net/%s/device/infiniband/*", name);
  if (count == 1 &&
      sysfs_read_text(root, port_name, sizeof(port_name), "sys/class/net/%s/phys_port_name", name) >
          0 &&
      sysfs_read_text(root, guid, sizeof(guid),
                      "sys/class/net/%s/device/infiniband/%s/sys_image_guid", name,
                      sysfs_name(hcas.gl_pathv[0])) > 0 &&
      strpbrk(guid, "123456789abcdef")) { /* not all zeroes */
    snprintf(port, NIC_FACTS_PORT_MAX, "%.40s %s", guid, port_name);
  }
  globfree(&hcas);
}

/* A NIC, or something on one: a bond, a VLAN. */
static bool leads_to_nic(const char *root, const char *port) {
  glob_t below;
  size_t count = sysfs_find(root, &below, "sys/class/net/%s/lower_*", port);
  globfree(&below);
  return count > 0 || sysfs_exists(root, "sys/class/net/%s/device", port);
}

/* Those of containers and virtual machines have ports of their own kind alone. */
bool nic_facts_is_inner_bridge(const char *root, const char *name) {
  glob_t ports;
  if (!sysfs_exists(root, "sys/class/net/%s/bridge", name)) {
    return false;
  }
  size_t count = sysfs_find(root, &ports, "sys/class/net/%s/brif/*", name), inner = 0;
  while (inner < count && !leads_to_nic(root, sysfs_name(ports.gl_pathv[inner]))) {
    inner++;
  }
  globfree(&ports);
  return inner == count;
}

void nic_facts_read(const char *root, const char *name, struct nic_facts *out) {
  enum { STACKED_MAX = 4 }; /* VLAN on bridge on bond on NIC */
  *out = (struct nic_facts){ 0 };
  read_pci_path(root, name, out->pci_path);
  out->speed_mbps = read_speed(root, name, STACKED_MAX);
  read_port(root, name, out->port);
}
