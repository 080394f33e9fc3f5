/* SPDX-License-Identifier: Apache-2.0 */
/* pci: the kind of a PCI function, from sysfs.
 * Owns: nothing.  Threads: any.
 * Blocks: as sysfs does.  Fails: pci_read, false, for what is not on PCI. */
#ifndef COMMON_PCI_H
#define COMMON_PCI_H

#include <stdbool.h>
#include <stdint.h>

struct pci_function {
  uint16_t vendor;
  uint16_t product;
  uint32_t class_code; /* base class, subclass, interface: 0x030200 is a 3D controller */
};

enum { PCI_ID_MAX = 10 }; /* "1d0f:ec20" */

/* `device` is a path below the root, such as "sys/bus/pci/devices/0000:00:05.0". */
bool pci_read(const char *root, const char *device, struct pci_function *function);

/* "1d0f:ec20". Returns `id`. */
const char *pci_format_id(const struct pci_function *function, char id[PCI_ID_MAX]);

/* NVIDIA's display and 3D controllers. */
bool pci_is_gpu(const struct pci_function *function);

/* NVIDIA's NVLink switches; a virtual machine may not see them. */
bool pci_is_nvswitch(const struct pci_function *function);

/* Ethernet, InfiniBand and other network controllers. */
bool pci_is_nic(const struct pci_function *function);

#endif
