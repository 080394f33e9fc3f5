/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL registers the same buffer once per connection, so ranges are looked up before anything is
 * probed, mapped or registered with a device. Where no connection may have RDMA lanes, host memory
 * has no range, and needs no lock. */
#include "net_plugin/plugin/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"
#include "net_plugin/lane/lane_memory.h"

enum access { ACCESS_HOST, ACCESS_GPU, ACCESS_MAPPED };

/* What handles share. */
struct memory_range {
  uintptr_t base;  /* first page, as the user addresses it */
  size_t bytes;    /* whole pages */
  ptrdiff_t shift; /* as the handles' */
  void *mapping;   /* of a dma-buf, or NULL */
  size_t map_bytes;
  struct lane_memory *devices; /* as the handles' */
  enum access access;
  enum memory_use use;
  unsigned references; /* handles */
  struct memory_range *next;
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory_range *cache;

static uintptr_t page_mask(void) {
  return (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

/* The kernel reads a byte for us and returns EFAULT where we would have crashed. */
static bool is_readable(int pipe_write, int pipe_read, const void *byte) {
  char drain;
  return write(pipe_write, byte, 1) == 1 && read(pipe_read, &drain, 1) == 1;
}

static bool is_cpu_addressable(const void *data, size_t bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
    return false;
  }
  bool is_addressable = is_readable(ends[1], ends[0], data) &&
                        is_readable(ends[1], ends[0], (const char *)data + bytes - 1);
  close(ends[0]);
  close(ends[1]);
  return is_addressable;
}

/* A range that covers the one asked for, in the same kind of access. One that was added before
 * any connection wanted devices has no registration, and one for sends does not serve receives:
 * such a range is registered once more, while sends go on to use the keys of the first. */
static struct memory_range *cache_find(uintptr_t base, size_t bytes, enum access access,
                                       enum memory_use use) {
  bool must_have_rdma = lane_memory_is_wanted();
  for (struct memory_range *range = cache; range; range = range->next) {
    if (base >= range->base && bytes <= range->bytes &&
        base - range->base <= range->bytes - bytes && access == range->access &&
        (range->devices ? range->use >= use : !must_have_rdma)) {
      return range;
    }
  }
  return NULL;
}

/* dma_buf: where RDMA devices find the range's base, or NULL. Peers write to host memory only: what
 * a NIC writes to a GPU's is visible to the GPU only after a flush, which nothing here does: the
 * CPU copies what arrives for it. */
static int cache_add(struct memory_range wanted, enum access access, enum memory_use use,
                     const struct lane_dma_buf *dma_buf, struct memory_range **out) {
  static const char *const how[] = { "as host memory", "at its own address",
                                     "through its dma-buf" };
  struct memory_range *range = malloc(sizeof(*range));
  if (!range) {
    return -ENOMEM;
  }
  *range = wanted;
  range->access = access;
  range->use = use;
  bool is_target = use == MEMORY_RECEIVED && access == ACCESS_HOST;
  range->devices =
      lane_memory_register((void *)(range->base + (uintptr_t)range->shift), range->bytes,
                           is_target ? LANE_MEMORY_REMOTE : LANE_MEMORY_LOCAL, dma_buf);
  range->references = 0;
  range->next = cache;
  cache = range;
  *out = range;
  LOG_TRACE("memory at %p, %zu bytes, is reached %s%s", (void *)range->base, range->bytes,
            how[access], range->devices ? " and by RDMA" : "");
  return 0;
}

/* With the lock held. */
static void cache_remove(struct memory_range *range) {
  struct memory_range **link = &cache;
  while (*link != range) {
    link = &(*link)->next;
  }
  *link = range->next;
  lane_memory_free(range->devices);
  if (range->mapping) {
    munmap(range->mapping, range->map_bytes);
  }
  free(range);
}

/* With the lock held, unless range is NULL. */
static int hand_out(struct memory_range *range, const struct memory **out) {
  struct memory *memory = calloc(1, sizeof(*memory));
  if (!memory) {
    if (range && range->references == 0) {
      cache_remove(range);
    }
    return -ENOMEM;
  }
  if (range) {
    *memory = (struct memory){ .shift = range->shift, .devices = range->devices, .range = range };
    range->references++;
  }
  *out = memory;
  return 0;
}

/* With the lock held. */
static int register_addressable(void *data, size_t bytes, struct memory_range pages,
                                enum memory_use use, struct memory_range **out) {
  if (!is_cpu_addressable(data, bytes)) {
    LOG_WARN("GPU memory at %p (%zu bytes) cannot be addressed by the CPU: unset "
             "STRATUS_GPU_POINTERS, so that NCCL stages through host memory",
             data, bytes);
    return -EFAULT;
  }
  return cache_add(pages, ACCESS_GPU, use, NULL, out);
}

/* With the lock held. Where the exporter cannot be mapped, by its own address. */
static int register_mapped(void *data, size_t bytes, const struct lane_dma_buf *dma_buf,
                           struct memory_range pages, enum memory_use use,
                           struct memory_range **out) {
  uint64_t inside = dma_buf->offset & page_mask();
  size_t map_bytes = (size_t)inside + bytes;
  void *mapping = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, dma_buf->fd,
                       (off_t)(dma_buf->offset - inside));
  if (mapping == MAP_FAILED) {
    LOG_TRACE("dma-buf of GPU memory at %p cannot be mapped: %s; trying its address", data,
              strerror(errno));
    return register_addressable(data, bytes, pages, use, out);
  }
  /* Only the range itself is mapped, so only it may be found again, not the pages around it. */
  pages.base = (uintptr_t)data;
  pages.bytes = bytes;
  pages.shift = (ptrdiff_t)((uintptr_t)mapping + inside - (uintptr_t)data);
  pages.mapping = mapping;
  pages.map_bytes = map_bytes;
  int rc = cache_add(pages, ACCESS_MAPPED, use, dma_buf, out);
  if (rc) {
    munmap(mapping, map_bytes);
  }
  return rc;
}

static struct memory_range pages_of(const void *data, size_t bytes) {
  uintptr_t first = (uintptr_t)data & ~page_mask();
  uintptr_t end = ((uintptr_t)data + bytes + page_mask()) & ~page_mask();
  return (struct memory_range){ .base = first, .bytes = end - first };
}

/* dma_buf: GPU memory's, or NULL. */
static int find_or_add(void *data, size_t bytes, enum memory_type type,
                       const struct lane_dma_buf *dma_buf, enum memory_use use,
                       const struct memory **out) {
  if (bytes == 0 || (type == MEMORY_HOST && !lane_memory_is_wanted())) {
    return hand_out(NULL, out);
  }
  if (type != MEMORY_GPU && type != MEMORY_HOST) {
    LOG_WARN("memory of type %d cannot be registered: 1 (host) and 2 (GPU) are known", (int)type);
    return -EINVAL;
  }
  struct memory_range pages = pages_of(data, bytes), *range;
  int rc = 0;
  pthread_mutex_lock(&cache_lock);
  if (dma_buf) {
    range = cache_find((uintptr_t)data, bytes, ACCESS_MAPPED, use);
    rc = range ? 0 : register_mapped(data, bytes, dma_buf, pages, use, &range);
  } else if (type == MEMORY_HOST) {
    range = cache_find(pages.base, pages.bytes, ACCESS_HOST, use);
    rc = range ? 0 : cache_add(pages, ACCESS_HOST, use, NULL, &range);
  } else {
    range = cache_find(pages.base, pages.bytes, ACCESS_GPU, use);
    rc = range ? 0 : register_addressable(data, bytes, pages, use, &range);
  }
  rc = rc ? rc : hand_out(range, out);
  pthread_mutex_unlock(&cache_lock);
  return rc;
}

static int tell_if_out_of_memory(int rc, size_t bytes) {
  if (rc == -ENOMEM) {
    LOG_WARN("cannot register %zu bytes: out of memory", bytes);
  }
  return rc;
}

int memory_register(void *data, size_t bytes, enum memory_type type, enum memory_use use,
                    const struct memory **out) {
  return tell_if_out_of_memory(find_or_add(data, bytes, type, NULL, use, out), bytes);
}

int memory_register_dma_buf(void *data, size_t bytes, uint64_t offset, int fd, enum memory_use use,
                            const struct memory **out) {
  const struct lane_dma_buf dma_buf = { fd, offset };
  return tell_if_out_of_memory(find_or_add(data, bytes, MEMORY_GPU, &dma_buf, use, out), bytes);
}

void memory_deregister(const struct memory *memory) {
  if (memory && memory->range) {
    pthread_mutex_lock(&cache_lock);
    if (--memory->range->references == 0) {
      cache_remove(memory->range);
    }
    pthread_mutex_unlock(&cache_lock);
  }
  free((void *)(uintptr_t)memory);
}

size_t memory_count(void) {
  pthread_mutex_lock(&cache_lock);
  size_t count = 0;
  for (const struct memory_range *range = cache; range; range = range->next) {
    count++;
  }
  pthread_mutex_unlock(&cache_lock);
  return count;
}
