/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_nics: what NCCL_IB_HCA means for the choice of NICs.
 *
 * It chooses the devices that NCCL's own IB transport moves data with, while NCCL_SOCKET_IFNAME
 * then only serves its bootstrap. A job that names devices gets their NICs, whatever
 * NCCL_SOCKET_IFNAME names; if none of them has the address of an interface, nothing changes.
 *
 * Owns: nothing.  Threads: any.  Blocks: as endpoint_find.  Fails: cannot. */
#ifndef NET_PLUGIN_PLUGIN_RDMA_NICS_H
#define NET_PLUGIN_PLUGIN_RDMA_NICS_H

#include <stddef.h>

#include "net_plugin/plugin/interface.h"

/* Where NCCL_IB_HCA names devices (endpoint_names_devices): chooses again. */
void rdma_nics_choose(struct interface *interfaces, size_t count);

#endif
