/* SPDX-License-Identifier: Apache-2.0 */
/* topology: how the GPUs and NICs of a machine are put together, as a text that is the same for
 * equal machines, and as a fingerprint of that text.
 * Owns: nothing; texts are the caller's to free.  Threads: any.
 * Blocks: as sysfs does.  Fails: NULL or an empty fingerprint where nothing is known: no sysfs,
 * neither GPU nor NIC in it, or out of memory.
 *
 *   numa 2: 2 x node[4 x switch(gpu 10de:2330, nic 15b3:1021 mlx5_core 400000)]
 *
 * Devices are PCI ids, for a NIC with driver and Mb/s, as far as they are told. node[] holds what
 * is near one NUMA node, unplaced[] what is near none; root() what hangs on one PCI root, switch()
 * what is behind one bridge of it, and whatever stands alone there stands without it. So the text
 * says how any two devices reach each other: PIX or PXB inside of switch(), PHB inside of node[],
 * SYS between nodes. NVSwitches are devices, too, where the machine shows them; other NVLinks sysfs
 * does not tell, but the GPU's id does (SXM and PCIe cards have different ones).
 *
 * No name, number or order in it comes from enumeration, so that another boot, or another machine
 * of the kind, has the same text. A NIC that tells no speed, for want of a link, counts as fast as
 * the fastest of its kind. Interfaces on USB, virtual functions beside their physical one, and
 * speeds that a host makes up (virtio, not on PCI) are left out.
 *
 * hwloc is not asked: with it installed on one host and not on another, equal machines would
 * differ. */
#ifndef COMMON_TOPOLOGY_H
#define COMMON_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>

enum { TOPOLOGY_ID_DIGITS = 12, TOPOLOGY_ID_MAX = TOPOLOGY_ID_DIGITS + 1 };

/* The text of what sysfs below `root` shows. */
char *topology_read(const char *root);

/* Hexadecimal, the start of the text's SHA-256; empty for NULL. */
void topology_fingerprint(const char *text, char id[TOPOLOGY_ID_MAX]);

/* Whether that many characters are a fingerprint. */
bool topology_is_id(const char *text, size_t length);

/* This machine's fingerprint: the user's word (STRATUS_TOPOLOGY), else of what STRATUS_SYSFS_ROOT
 * shows. */
void topology_identify(char id[TOPOLOGY_ID_MAX]);

/* ---- inside ---- */

/* A GPU, NIC or NVSwitch. */
struct topology_device {
  char *path; /* "/sys/devices/pci0000:00/0000:00:05.0" */
  char *text; /* "gpu 10de:2330" */
  int numa;   /* -1: near none */
};

/* Makes the text; sorts the devices. NULL if memory is out. */
char *topology_format(struct topology_device *devices, size_t count, int numa_count);

#endif
