/* SPDX-License-Identifier: Apache-2.0 */
/* lane_memory: ranges of memory that devices read and write by themselves, for lanes that are not
 * TCP flows. A range is registered with all devices in use, now and later; where a device refuses,
 * it has no key, and lanes copy.
 *
 * Owns: registrations, until lane_memory_free.  Threads: any; lane_memory_remote_key takes no lock.
 * Blocks: register and free as devices do, milliseconds for large ranges: not with an engine lock;
 * the others never.
 * Fails: lane_memory_register returns NULL when nobody wants memory, or without memory. */
#ifndef NET_PLUGIN_LANE_LANE_MEMORY_H
#define NET_PLUGIN_LANE_LANE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lane_memory;

/* A device with which memory is registered; all zero: none. */
struct lane_domain {
  int index;
  uint32_t id; /* differs from devices that had the same index before; from 1 */
};

/* A connection whose lanes may use devices, now or later, has been made, or ends. */
void lane_memory_want(bool is_wanted);
/* Is there any such connection? Without one registering has no use. */
bool lane_memory_is_wanted(void);

/* Of GPU memory; the CPU finds the byte at `offset` at the range's base. */
struct lane_dma_buf {
  int fd; /* it is duplicated */
  uint64_t offset;
};
/* Who may do what. Devices of this host only read what is sent. */
enum lane_memory_rights {
  LANE_MEMORY_LOCAL,  /* no peer can reach it, whatever key it knows or guesses */
  LANE_MEMORY_REMOTE, /* peers write it, by its key: for receives; sends may use it, too */
};
/* dma_buf: NULL for memory that has none. */
struct lane_memory *lane_memory_register(void *base, size_t bytes, enum lane_memory_rights rights,
                                         const struct lane_dma_buf *dma_buf);
/* NULL: nothing happens. */
void lane_memory_free(struct lane_memory *memory);

bool lane_memory_covers(const struct lane_memory *memory, const void *data, size_t bytes);
/* By which a peer writes the range through this domain; 0: it cannot, or the device has gone. */
uint32_t lane_memory_remote_key(const struct lane_memory *memory, struct lane_domain domain);

#endif
