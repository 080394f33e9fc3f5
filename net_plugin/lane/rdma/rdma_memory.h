/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_memory: the device side of lane_memory.h, which it implements: with which devices ranges are
 * registered.
 *
 * A range is registered with every device that is attached: with those that are there when it is
 * made, and with those that come later, or come back. Where a device refuses, the range has no keys
 * there, and lanes copy.
 *
 * What is registered on a receive connection this host reads and writes, and peers may write by its
 * key; what is registered on a send connection, and a link's own, this host's device reads. The
 * same pages for both are two registrations, unless the receive came first. A receive into memory
 * that is registered for sends only has a remote buffer without keys, and is copied out of slots.
 *
 * Owns: registrations, and one hold on each device, until rdma_memory_release, or until a lost
 * device has no user left.  Threads: any; rdma_memory_keys takes no lock.
 * Blocks: the first to attach a device, for all ranges there are (rdma_opener), during which others
 * wait for one range at most; what gives up registrations, as devices do.  Fails: as stated. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_MEMORY_H
#define NET_PLUGIN_LANE_RDMA_RDMA_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/lane_memory.h"

struct rdma_device;

#define RDMA_DOMAINS 16 /* devices attached at once */

/* One more user of the device, such as a queue pair. The index of its domain, below RDMA_DOMAINS,
 * or -ENOSPC. */
int rdma_memory_attach(struct rdma_device *device);
/* After the queue pair is gone. */
void rdma_memory_detach(int domain);
/* No peer can write through this device any more, nor will be able to: all registrations that let
 * one are given up, for whatever connection they were. 0, or the errno of one that could not be. */
int rdma_memory_revoke(int domain);
/* See struct lane_domain. 0: no device is there, or it is being closed. */
uint32_t rdma_memory_domain_id(int domain);
/* Gives up the devices that have no users: all of them, or those that are lost. */
void rdma_memory_release(bool is_all);

/* False: the range is not registered there. *remote is 0 where no peer may write. */
bool rdma_memory_keys(const struct lane_memory *memory, int domain, uint32_t *local,
                      uint32_t *remote);

#endif
