/* SPDX-License-Identifier: Apache-2.0 */
/* topology: this machine as hwloc sees it: NUMA nodes, PCI devices and what is between them; and
 * the placement of its GPUs and NICs as a text, equal for equal machines, with a fingerprint.
 *
 * hwloc is linked statically and sees no variable of its own, no plugin and no udev
 * (static_calls.c), so equal machines see equal things. Of what it does not know, three facts are
 * added from sysfs: the drivers of NICs, and which are virtual functions; and for an
 * interface that is not on PCI, whether it is on USB.
 *
 * Owns: the topology of the root that was asked for last, for the life of the process: it is loaded
 * once, and what is plugged in later is not in it. Texts are the caller's to free.  Threads: any,
 * as long as all ask for one root.  Blocks: when it loads, for milliseconds, as sysfs does; 50 to
 * 70 ms where a hypervisor is slow to show PCI configuration space.  Fails: NULL, 0, -1 or empty
 * where nothing is known: no sysfs, neither GPU nor NIC in it, or out of memory.
 *
 *   numa 2: 2 x node[4 x switch(gpu 10de:2330, nic 15b3:1021 mlx5_core)]
 *
 * Devices are PCI ids, for a NIC with its driver. node[] groups devices near one NUMA
 * node, unplaced[] those near none; root() those below one PCI root, switch() those behind one
 * bridge; a group of one is written without brackets. So the text shows how any two devices are
 * connected: PIX or PXB inside of switch(), PHB inside of node[], SYS between nodes. NVLinks and
 * NVSwitches are not in it: a virtual machine may not see them, and SXM and PCIe GPUs have
 * different ids.
 *
 * No name, number or order in it depends on enumeration, so another boot or another machine of the
 * same kind has the same text; nor has what comes and goes, such as a link and its speed.
 * Interfaces on USB and virtual functions beside their physical one are left out. */
#ifndef COMMON_TOPOLOGY_H
#define COMMON_TOPOLOGY_H

#include <sched.h>
#include <stdint.h>

#include "common/topology_id.h"

enum { TOPOLOGY_PCI_ID_MAX = 10 }; /* "1d0f:ec20" */

/* `root` is as in sysfs.h; below another one than "/" it is the file topology.xml, as hwloc writes
 * it. */
char *topology_read(const char *root);

/* Hexadecimal, the start of the text's SHA-256; empty for NULL. */
void topology_fingerprint(const char *text, char id[TOPOLOGY_ID_MAX]);

/* The fingerprint of this machine: STRATUS_TOPOLOGY, else of sysfs_process_root. */
void topology_identify(char id[TOPOLOGY_ID_MAX]);

/* What the firmware calls the machine, by hwloc's names: "DMISysVendor". Empty: not known. */
const char *topology_firmware(const char *root, const char *name);

struct topology_counts {
  uint32_t gpus;                 /* NVIDIA's display and 3D controllers */
  char gpu[TOPOLOGY_PCI_ID_MAX]; /* the first one's */
  uint32_t nics;                 /* with a device behind them */
};
void topology_count(const char *root, struct topology_counts *counts);

/* The NUMA node that a PCI function is near to, and the CPUs near it: -1 and none if not known.
 * `path` ends in its address: "/sys/devices/pci0000:00/0000:00:05.0". */
int topology_near(const char *root, const char *path, cpu_set_t *near);

#endif
