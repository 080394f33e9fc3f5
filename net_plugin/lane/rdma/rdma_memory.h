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

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/lane_memory.h"
#include "net_plugin/lane/rdma/verbs_api.h"

enum { RDMA_DEVICES = 16 }; /* at once; more NICs than a host has for NCCL */

/* An open device, as memory is registered with it. */
struct rdma_domain {
  int index; /* of struct lane_domain: from 0, below RDMA_DEVICES */
  const char *name;
  const struct verbs_api *api;
  struct ibv_pd *pd;
  const atomic_bool *is_lost; /* nothing more is registered */
};

/* All ranges are registered with it, and its id is a new one. What it points to lives until it is
 * removed. */
void rdma_memory_add(const struct rdma_domain *domain);
/* Nobody uses it any more. */
void rdma_memory_remove(int index);
/* No peer can write through this device, which is lost, any more: all registrations that let one
 * are given up, for whatever connection they were. 0, or the errno of one that could not be. */
int rdma_memory_revoke(int index);
/* The id of struct lane_domain; 0: it is not open. */
uint32_t rdma_memory_domain(int index);

/* False: the range is not registered there. *remote is 0 where no peer may write. */
bool rdma_memory_keys(const struct lane_memory *memory, int domain, uint32_t *local,
                      uint32_t *remote);

#endif
