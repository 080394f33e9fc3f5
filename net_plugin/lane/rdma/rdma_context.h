/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_context: makes an rdma_device of a port that was chosen, and takes it apart. For rdma_device
 * only, which shares it and knows when it breaks.
 * Owns: nothing; the device owns what was opened.  Threads: any.
 * Blocks: as long as drivers take.  Fails: open returns NULL and says why. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_CONTEXT_H
#define NET_PLUGIN_LANE_RDMA_RDMA_CONTEXT_H

#include "net_plugin/lane/rdma/rdma_device.h"

struct rdma_device *rdma_context_open(const struct rdma_sysfs_port *from, const struct nic *nic,
                                      const struct rdma_settings *settings, char why[RDMA_WHY_MAX]);

/* Whatever there is of it. */
void rdma_context_close(struct rdma_device *device);

/* Is its device file still in sysfs? */
bool rdma_context_has_entry(const struct rdma_device *device);

#endif
