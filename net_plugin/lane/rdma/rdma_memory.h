/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_memory: ranges of memory that RDMA devices may read and write by themselves.
 *
 * A range is registered with every device that is attached: with those that are there when it is
 * made, and with those that come later, or come back. Where a device refuses, the range has no keys
 * there, and lanes copy.
 *
 * Owns: registrations, and one hold on each device, until rdma_memory_release, or until a lost
 * device has no user left.  Threads: any; rdma_memory_keys takes no lock.
 * Blocks: new and free as registrations do, milliseconds for large ranges; the first to attach a
 * device, for all ranges there are (rdma_opener), during which others wait for one range at most.
 * Fails: rdma_memory_new returns NULL when nobody wants memory, or without memory. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_MEMORY_H
#define NET_PLUGIN_LANE_RDMA_RDMA_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rdma_device;
struct rdma_memory;

#define RDMA_DOMAINS 16 /* devices attached at once */

/* One more user of the device, before a queue pair is made on it, say. Its domain, below
 * RDMA_DOMAINS, or -ENOSPC. */
int rdma_memory_attach(struct rdma_device *device);
/* After the queue pair is gone. */
void rdma_memory_detach(int domain);
/* No peer can write through this device any more, nor will be able to: all registrations that let
 * one are given up, for whatever connection they were. 0, or the errno of one that could not be. */
int rdma_memory_revoke(int domain);
bool rdma_memory_is_attached(const struct rdma_device *device);
/* Tells a device from others that had the same domain before. Never 0. */
uint32_t rdma_memory_domain_id(int domain);
/* Gives up all devices that have no users. */
void rdma_memory_release(void);
/* Those of them that are of no use for new queue pairs. */
void rdma_memory_forget_lost(void);

/* A connection that may have RDMA lanes, now or later, has come, or goes. */
void rdma_memory_want(bool is_wanted);
/* Is there any? Else registering is of no use. */
bool rdma_memory_is_wanted(void);

/* Of GPU memory; the CPU finds the byte at `offset` at the range's base. */
struct rdma_dma_buf {
  int fd; /* a copy is kept */
  uint64_t offset;
};
/* Who may do what. What is sent, devices of this host only read. */
enum rdma_rights {
  RDMA_LOCAL,  /* no peer gets at it, whatever key it knows or guesses */
  RDMA_REMOTE, /* peers write it, by its key: for receives; it may be sent from, too */
};
/* dma_buf: NULL for memory that has none. */
struct rdma_memory *rdma_memory_new(void *base, size_t bytes, enum rdma_rights rights,
                                    const struct rdma_dma_buf *dma_buf);
void rdma_memory_free(struct rdma_memory *memory);

bool rdma_memory_covers(const struct rdma_memory *memory, const void *data, size_t bytes);
/* False: the range is not registered there. *remote is 0 where no peer may write. */
bool rdma_memory_keys(const struct rdma_memory *memory, int domain, uint32_t *local,
                      uint32_t *remote);

#endif
