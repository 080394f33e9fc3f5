/* SPDX-License-Identifier: Apache-2.0 */
/* See pci.h. */
#include "common/pci.h"

#include <stdio.h>

#include "common/sysfs.h"

enum {
  VENDOR_NVIDIA = 0x10de,
  BASE_NETWORK = 0x02, /* the upper 8 of 24 bits of the class */
  CLASS_VGA = 0x0300,  /* the upper 16 */
  CLASS_3D = 0x0302,
  CLASS_OTHER_BRIDGE = 0x0680,
};

/* Other buses have the attributes vendor and device too, but only PCI devices have a class. */
bool pci_read(const char *root, const char *device, struct pci_function *function) {
  uint64_t vendor, product, class_code;
  if (sysfs_read_hex(root, &class_code, "%s/class", device) < 0 ||
      sysfs_read_hex(root, &vendor, "%s/vendor", device) < 0 ||
      sysfs_read_hex(root, &product, "%s/device", device) < 0 || class_code > UINT32_MAX ||
      vendor > UINT16_MAX || product > UINT16_MAX) {
    return false;
  }
  *function = (struct pci_function){
    .vendor = (uint16_t)vendor,
    .product = (uint16_t)product,
    .class_code = (uint32_t)class_code,
  };
  return true;
}

const char *pci_format_id(const struct pci_function *function, char id[PCI_ID_MAX]) {
  snprintf(id, PCI_ID_MAX, "%04x:%04x", function->vendor, function->product);
  return id;
}

bool pci_is_gpu(const struct pci_function *function) {
  uint32_t class_code = function->class_code >> 8;
  return function->vendor == VENDOR_NVIDIA && (class_code == CLASS_VGA || class_code == CLASS_3D);
}

bool pci_is_nvswitch(const struct pci_function *function) {
  return function->vendor == VENDOR_NVIDIA && function->class_code >> 8 == CLASS_OTHER_BRIDGE;
}

bool pci_is_nic(const struct pci_function *function) {
  return function->class_code >> 16 == BASE_NETWORK;
}
