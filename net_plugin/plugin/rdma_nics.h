/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_nics: which interfaces have an HCA, and what the choice of HCAs means for that of NICs.
 *
 * NCCL_IB_HCA chooses the devices that NCCL's own IB transport moves data with, while
 * NCCL_SOCKET_IFNAME then only serves its bootstrap. A job that names HCAs gets the NICs of these,
 * whatever NCCL_SOCKET_IFNAME names; if none of them belongs to an interface, nothing changes.
 *
 * Owns: nothing.  Threads: any.  Blocks: as sysfs does.  Fails: cannot. */
#ifndef NET_PLUGIN_PLUGIN_RDMA_NICS_H
#define NET_PLUGIN_PLUGIN_RDMA_NICS_H

#include <stddef.h>

#include "net_plugin/lane/rdma_survey.h"
#include "net_plugin/plugin/interface.h"
#include "net_plugin/plugin/nic_facts.h"

/* The HCA of one interface. */
struct rdma_nic {
  char name[IF_NAMESIZE];
  size_t interface;                  /* the address with which it was found */
  char pci_path[NIC_FACTS_PATH_MAX]; /* empty: not on PCI */
  uint32_t speed_mbps;
};
struct rdma_nics {
  unsigned count;
  struct rdma_nic list[INTERFACE_CHOSEN_MAX];
};

/* Finds those of the chosen interfaces, after choosing again where NCCL_IB_HCA is set. */
void rdma_nics_find(struct interface *interfaces, size_t count, const char *sysfs_root,
                    const struct rdma_settings *settings, struct rdma_nics *out);

/* NULL: the interface has no HCA, or none that may be used. */
const struct rdma_nic *rdma_nics_of(const struct rdma_nics *nics, const char *name);

#endif
