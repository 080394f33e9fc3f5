/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_memory: the device side of lane_memory.h, which it implements: with which devices ranges are
 * registered.
 *
 * A range is registered with every device that is open: with those that are there when it is made,
 * and with those that come later, or come back. Where a device refuses, the range has no keys
 * there, and lanes copy.
 *
 * What is registered on a receive connection this host reads and writes, and peers may write by its
 * key; what is registered on a send connection this host's device reads. The same pages for both
 * are two registrations, unless the receive came first. A receive into memory that is registered
 * for sends only has a remote buffer without keys, and is copied out of slots.
 *
 * Owns: registrations.  Threads: any; rdma_memory_keys takes no lock.
 * Blocks: as devices do, and while another thread waits for one.  Fails: as stated. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_MEMORY_H
#define NET_PLUGIN_LANE_RDMA_RDMA_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/lane_memory.h"

struct rdma_device;

/* A device that opens; all ranges are registered with it. */
void rdma_memory_add(struct rdma_device *device);
/* Nobody uses it any more. */
void rdma_memory_remove(struct rdma_device *device);
/* No peer can write through this device, which is lost, any more: all registrations that let one
 * are given up, for whatever connection they were. 0, or the errno of one that could not be. */
int rdma_memory_revoke(const struct rdma_device *device);

/* False: the range is not registered there. *remote is 0 where no peer may write. */
bool rdma_memory_keys(const struct lane_memory *memory, int domain, uint32_t *local,
                      uint32_t *remote);

#endif
