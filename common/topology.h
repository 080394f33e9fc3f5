/* SPDX-License-Identifier: Apache-2.0 */
/* topology: the placement of GPUs and NICs of a machine as a text, equal for equal machines, and a
 * fingerprint of that text. Owns: nothing; texts are the caller's to free.  Threads: any. Blocks:
 * as sysfs does.  Fails: NULL or an empty fingerprint where nothing is known: no sysfs, neither GPU
 * nor NIC in it, or out of memory.
 *
 *   numa 2: 2 x node[4 x switch(gpu 10de:2330, nic 15b3:1021 mlx5_core 400000)]
 *
 * Devices are PCI ids, for a NIC with driver and Mb/s if known. node[] groups devices near one NUMA
 * node, unplaced[] those near none; root() those below one PCI root, switch() those behind one
 * bridge; a group of one is written without brackets. So the text shows how any two devices are
 * connected: PIX or PXB inside of switch(), PHB inside of node[], SYS between nodes. NVSwitches are
 * included where the machine has them visible; other NVLinks are not in sysfs, but SXM and PCIe
 * GPUs have different ids.
 *
 * No name, number or order in it depends on enumeration, so another boot or another machine of the
 * same kind has the same text. A NIC without a link has no speed and counts as fast as the fastest
 * of its kind. Interfaces on USB, virtual functions beside their physical one, and speeds invented
 * by a host (virtio, not on PCI) are left out.
 *
 * hwloc is not used: equal machines would differ if only one has it installed. */
#ifndef COMMON_TOPOLOGY_H
#define COMMON_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pci.h"

enum {
  TOPOLOGY_ID_DIGITS = 12,
  TOPOLOGY_ID_MAX = TOPOLOGY_ID_DIGITS + 1,
  TOPOLOGY_DRIVER_MAX = 64, /* longer names are cut */
};

/* The text, from sysfs below `root`. */
char *topology_read(const char *root);

/* Hexadecimal, the start of the text's SHA-256; empty for NULL. */
void topology_fingerprint(const char *text, char id[TOPOLOGY_ID_MAX]);

/* Whether that many characters are a fingerprint. */
bool topology_is_id(const char *text, size_t length);

/* The fingerprint of this machine: STRATUS_TOPOLOGY, else from STRATUS_SYSFS_ROOT. */
void topology_identify(char id[TOPOLOGY_ID_MAX]);

/* ---- inside ---- */

/* A GPU, NIC or NVSwitch. */
struct topology_device {
  char *path; /* "/sys/devices/pci0000:00/0000:00:05.0" */
  char *text; /* "gpu 10de:2330", made of what follows */
  int numa;   /* -1: near none */
  const char *kind;
  char id[PCI_ID_MAX];              /* empty: not on PCI */
  char driver[TOPOLOGY_DRIVER_MAX]; /* of NICs */
  uint32_t mbps;                    /* of NICs; 0: not told */
};

/* Makes the text; sorts the devices. NULL if memory is out. */
char *topology_format(struct topology_device *devices, size_t count, int numa_count);

#endif
