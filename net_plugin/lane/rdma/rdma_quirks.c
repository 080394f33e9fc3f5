/* SPDX-License-Identifier: Apache-2.0 */
/* One row for each kind of device, from what rdma-core's providers and the kernel's drivers do and
 * do not offer (rdma-core v50, Linux 6.12), and for eRDMA from Alibaba Cloud's manual. */
#include "net_plugin/lane/rdma/rdma_quirks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct row {
  uint16_t pci_vendor;      /* 0: not on PCI, recognised by name */
  uint16_t pci_device;      /* 0: all of this vendor */
  uint16_t pci_device_last; /* 0: only that one */
  const char *name_prefix;
  struct rdma_traits traits;
};

static const struct row rows[] = {
  /* Alibaba Cloud elastic RDMA. Its modes, standard (iWARP) and compat (RoCE), tell themselves
   * apart by the transport. Paths are chosen by its own card, whatever the flow label. */
  { .pci_vendor = 0x1ded,
    .pci_device = 0x107f,
    .traits = { .model = "eRDMA",
                .max_inline = 96,
                .max_send_sge = 6,
                .has_immediate = true,
                .is_usable = true } },
  /* Amazon's Elastic Fabric Adapter: scalable reliable datagrams only. */
  { .pci_vendor = 0x1d0f,
    .pci_device = 0xefa0,
    .pci_device_last = 0xefaf,
    .traits = { .model = "EFA",
                .has_dmabuf = true,
                .why_not = "EFA has no reliable connections (RC)" } },
  /* Microsoft Azure Network Adapter: its provider knows no inline data. */
  { .pci_vendor = 0x1414,
    .pci_device = 0x00b9,
    .pci_device_last = 0x00ba,
    .traits = { .model = "MANA", .has_dmabuf = true, .is_usable = true } },
  /* mlx4, from before the UDP source port was anybody's to choose, and without dma-buf. */
  { .pci_vendor = 0x15b3,
    .pci_device = 0x1002,
    .pci_device_last = 0x1010,
    .traits = { .model = "ConnectX-3", .max_inline = 220, .is_usable = true } },
  { .pci_vendor = 0x15b3,
    .traits = { .model = "ConnectX",
                .max_inline = 220,
                .has_dmabuf = true,
                .has_flow_label = true,
                .is_usable = true } },
  { .pci_vendor = 0x14e4,
    .traits = { .model = "Broadcom",
                .max_inline = 96,
                .has_dmabuf = true,
                .has_flow_label = true,
                .is_usable = true } },
  /* 48 bytes are what the oldest of them (i40iw) take. */
  { .pci_vendor = 0x8086,
    .traits = { .model = "Intel",
                .max_inline = 48,
                .has_dmabuf = true,
                .has_flow_label = true,
                .is_usable = true } },
  /* Linux' own, over any network interface: the source port follows from the queue pair's number.
   */
  { .name_prefix = "rxe", .traits = { .model = "SoftRoCE", .max_inline = 220, .is_usable = true } },
  { .name_prefix = "siw", .traits = { .model = "SoftiWARP", .max_inline = 80, .is_usable = true } },
};

static const struct rdma_traits ordinary = {
  .model = "unknown",
  .max_inline = 64,
  .has_dmabuf = true,
  .has_flow_label = true,
  .is_usable = true,
};

static bool fits(const struct row *row, const struct rdma_sysfs_port *port) {
  if (!row->pci_vendor) {
    return !port->pci_vendor && !strncmp(port->name, row->name_prefix, strlen(row->name_prefix));
  }
  if (row->pci_vendor != port->pci_vendor) {
    return false;
  }
  uint16_t last = row->pci_device_last ? row->pci_device_last : row->pci_device;
  return row->pci_device == 0 || (port->pci_device >= row->pci_device && port->pci_device <= last);
}

void rdma_quirks_find(const struct rdma_sysfs_port *port, struct rdma_traits *out) {
  *out = ordinary;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (fits(&rows[i], port)) {
      *out = rows[i].traits;
      break;
    }
  }
  out->has_immediate |= !port->is_iwarp;
}

/* Does NCCL_PROTO let NCCL take LL128? "LL,Simple", "^LL128". */
static bool may_use_ll128(const char *protocols) {
  if (!protocols || !*protocols) {
    return true;
  }
  bool is_excluding = *protocols == '^';
  protocols += is_excluding;
  bool is_listed = false;
  while (*protocols) {
    size_t length = strcspn(protocols, ",");
    is_listed |= length == strlen("LL128") && !strncasecmp(protocols, "LL128", length);
    protocols += length + (protocols[length] == ',');
  }
  return is_listed != is_excluding;
}

const char *rdma_quirks_warning(const struct rdma_sysfs_port *port, unsigned mtu,
                                const char *protocols, char text[RDMA_QUIRKS_TEXT_MAX]) {
  enum { JUMBO_MTU = 8500, PLAIN_MTU = 1400 };
  struct rdma_traits traits;
  rdma_quirks_find(port, &traits);
  if (strcmp(traits.model, "eRDMA") != 0 || mtu == 0 || mtu == JUMBO_MTU || mtu == PLAIN_MTU ||
      !may_use_ll128(protocols)) {
    return NULL;
  }
  snprintf(
      text, RDMA_QUIRKS_TEXT_MAX,
      "%s: the MTU of its network interface is %u, and with eRDMA NCCL's LL128 protocol may then "
      "deliver wrong data: set the MTU to %d (or %d without jumbo frames), or NCCL_PROTO=^LL128",
      port->name, mtu, JUMBO_MTU, PLAIN_MTU);
  return text;
}
