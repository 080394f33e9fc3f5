/* SPDX-License-Identifier: Apache-2.0 */
/* memory: registered user memory, where the CPU finds it, and where devices do.
 *
 * TCP copies with the CPU, so host memory needs nothing unless there are RDMA lanes, and GPU memory
 * is usable only where the CPU can address it (coherent systems such as Grace Hopper) or its
 * dma-buf can be mapped. Both are offered to NCCL only with STRATUS_GPU_POINTERS=1.
 *
 * Every registration has a handle of its own, so that the end of one identifies the requests that
 * lose their memory (connection_withdraw); what is behind handles of the same range, they share.
 *
 * Owns: handles, until memory_deregister; ranges of pages and their mappings, one cache per
 * process, counted.  Threads: any; memory_address is lock-free: a handle never changes. Blocks: on
 * the cache's lock and in mmap.  Fails: negative errno, after LOG_WARN. */
#ifndef NET_PLUGIN_PLUGIN_MEMORY_H
#define NET_PLUGIN_PLUGIN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* NCCL_PTR_HOST and NCCL_PTR_CUDA, src/include/plugin/nccl_net.h:25-26 at v2.30.7. */
enum memory_type { MEMORY_HOST = 1, MEMORY_GPU = 2 };

/* What it is registered for. Memory for receives may be sent from, too; a receive into memory that
 * is registered for sends only is copied. */
enum memory_use { MEMORY_SENT, MEMORY_RECEIVED };

struct memory_range;
struct lane_memory;

/* Immutable once handed out. */
struct memory {
  ptrdiff_t shift;             /* what leads from the user's address to the CPU's */
  struct lane_memory *devices; /* NULL: no RDMA device has it registered */
  struct memory_range *range;  /* NULL: there is nothing behind it */
};

/* -EFAULT if it is GPU memory that the CPU cannot address. */
int memory_register(void *data, size_t bytes, enum memory_type type, enum memory_use use,
                    const struct memory **out);

/* The same through a dma-buf, of which `data` is the byte at `offset`. */
int memory_register_dma_buf(void *data, size_t bytes, uint64_t offset, int fd, enum memory_use use,
                            const struct memory **out);

/* Ends the registration. Requests that were posted with it must be complete or withdrawn:
 * plugin_deregister sees to that. NULL: nothing happens. */
void memory_deregister(const struct memory *memory);

/* Where the CPU finds `data`. A NULL handle, as NCCL passes for empty messages, changes nothing. */
static inline void *memory_address(const struct memory *memory, void *data) {
  return memory ? (char *)data + memory->shift : data;
}

/* Ranges in the cache, for tests and messages. */
size_t memory_count(void);

#endif
