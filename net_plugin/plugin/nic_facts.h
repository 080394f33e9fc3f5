/* SPDX-License-Identifier: Apache-2.0 */
/* nic_facts: what sysfs alone knows about one network interface, by its name of now: hwloc
 * (common/topology.h) has a snapshot, in which one that was renamed or plugged in is missing, and
 * knows neither speeds and their drivers, nor what bonds, VLANs and bridges stand on, nor ports
 * that several PCI links share. Owns: nothing.  Threads: any. Blocks: as sysfs does.  Fails:
 * cannot; what is not known is empty or 0. */
#ifndef NET_PLUGIN_PLUGIN_NIC_FACTS_H
#define NET_PLUGIN_PLUGIN_NIC_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NIC_FACTS_PATH_MAX = 256, NIC_FACTS_PORT_MAX = 80 };

struct nic_facts {
  char pci_path[NIC_FACTS_PATH_MAX]; /* "/sys/devices/pci0000:00/0000:00:05.0", or empty */
  uint32_t speed_mbps;               /* 0: the driver does not know or cannot be trusted */
  /* The physical port: the card's GUID and the port's name on it; empty if not known. Interfaces
   * with the same one share a port: a card with several PCI links has one for each, and each tells
   * the speed of the whole port (DGX Spark: a port of 200 Gb/s behind two links of 100 Gb/s). */
  char port[NIC_FACTS_PORT_MAX];
};

/* `root` as in common/sysfs.h. */
void nic_facts_read(const char *root, const char *name, struct nic_facts *out);

/* Whether it is a bridge without a NIC, as containers and virtual machines have, which leads to
 * this host alone. */
bool nic_facts_is_inner_bridge(const char *root, const char *name);

#endif
