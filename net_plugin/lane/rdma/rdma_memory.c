/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_memory.h. Keys are published as one word each, so that who posts work needs no lock; the
 * registrations behind them are the lock's, which is held while devices register. */
#include "net_plugin/lane/rdma/rdma_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/descriptor.h"
#include "common/list.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"

struct lane_memory {
  uint8_t *base;
  size_t bytes;
  enum lane_memory_rights rights;
  int fd; /* of its dma-buf, -1: none */
  uint64_t offset;
  struct ibv_mr *registrations[RDMA_DEVICES];
  _Atomic uint64_t keys[RDMA_DEVICES]; /* local in the upper half, remote in the lower; 0: none */
  struct list_node node;
};

static atomic_uint wanting;           /* connections */
static atomic_uint ids[RDMA_DEVICES]; /* of open domains; 0: it is not open */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. */
static struct rdma_domain domains[RDMA_DEVICES]; /* without an API: it is not open */
static uint32_t last_id;
static struct list memories = { { &memories.head, &memories.head } };

/* ---- registrations, with the lock held ---- */

/* The order in which the parts of a write become visible is of no interest before its completion,
 * and devices are faster when they need not keep it. */
static struct ibv_mr *register_range(const struct lane_memory *memory,
                                     const struct rdma_domain *domain) {
  /* Devices may always read for their own host. */
  int access =
      memory->rights == LANE_MEMORY_REMOTE ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  const struct verbs_api *api = domain->api;
  if (memory->fd >= 0 && api->reg_dmabuf_mr) {
    struct ibv_mr *mr = api->reg_dmabuf_mr(domain->pd, memory->offset, memory->bytes,
                                           (uintptr_t)memory->base, memory->fd, access);
    if (mr) {
      return mr;
    }
  }
  if (api->reg_mr_iova2) {
    struct ibv_mr *mr =
        api->reg_mr_iova2(domain->pd, memory->base, memory->bytes, (uintptr_t)memory->base,
                          (unsigned)access | IBV_ACCESS_RELAXED_ORDERING);
    if (mr) {
      return mr;
    }
  }
  return api->reg_mr(domain->pd, memory->base, memory->bytes, access);
}

static void register_with(struct lane_memory *memory, const struct rdma_domain *domain) {
  if (!domain->api || atomic_load(domain->is_lost)) {
    return;
  }
  struct ibv_mr *mr = register_range(memory, domain);
  memory->registrations[domain->index] = mr;
  if (!mr) {
    LOG_WARN_EVERY(RDMA_WARN_INTERVAL_NS,
                   "%s does not register %zu bytes at %p: %s; they are copied instead. Often the "
                   "limit of locked memory is too low (ulimit -l)",
                   domain->name, memory->bytes, (void *)memory->base, strerror(errno));
    return;
  }
  uint32_t remote = memory->rights == LANE_MEMORY_REMOTE ? mr->rkey : 0;
  atomic_store_explicit(&memory->keys[domain->index], (uint64_t)mr->lkey << 32 | remote,
                        memory_order_release);
}

/* 0 or errno. */
static int give_up(const struct rdma_domain *domain, struct ibv_mr *mr) {
  int error = 0;
  for (unsigned tries = 0; tries < RDMA_DESTROY_TRIES; tries++) {
    error = domain->api->dereg_mr(mr);
    if (!error) {
      return 0;
    }
  }
  LOG_WARN_EVERY(RDMA_WARN_INTERVAL_NS,
                 "%s cannot deregister memory (ibv_dereg_mr: %s): %zu bytes at %p stay pinned, and "
                 "the device can reach them. Look at the kernel's log, and reload its driver",
                 domain->name, strerror(error), mr->length, mr->addr);
  return error;
}

/* 0 or errno: then it is still there, without keys. */
static int deregister_from(struct lane_memory *memory, const struct rdma_domain *domain) {
  struct ibv_mr *mr = memory->registrations[domain->index];
  atomic_store_explicit(&memory->keys[domain->index], 0, memory_order_release);
  int error = mr ? give_up(domain, mr) : 0;
  memory->registrations[domain->index] = error ? mr : NULL;
  return error;
}

/* ---- devices ---- */

void rdma_memory_add(const struct rdma_domain *domain) {
  pthread_mutex_lock(&lock);
  domains[domain->index] = *domain;
  LIST_FOR_EACH(node, &memories) {
    register_with(LIST_ENTRY(node, struct lane_memory, node), domain);
  }
  atomic_store(&ids[domain->index], ++last_id);
  pthread_mutex_unlock(&lock);
}

/* The first error of those that could not be given up. */
static int deregister_all(const struct rdma_domain *domain, enum lane_memory_rights least) {
  int error = 0;
  LIST_FOR_EACH(node, &memories) {
    struct lane_memory *memory = LIST_ENTRY(node, struct lane_memory, node);
    int failed = memory->rights >= least ? deregister_from(memory, domain) : 0;
    error = error ? error : failed;
  }
  return error;
}

void rdma_memory_remove(int index) {
  pthread_mutex_lock(&lock);
  atomic_store(&ids[index], 0);
  deregister_all(&domains[index], LANE_MEMORY_LOCAL);
  domains[index] = (struct rdma_domain){ .api = NULL };
  pthread_mutex_unlock(&lock);
}

int rdma_memory_revoke(int index) {
  pthread_mutex_lock(&lock);
  int error = deregister_all(&domains[index], LANE_MEMORY_REMOTE);
  pthread_mutex_unlock(&lock);
  return error;
}

uint32_t rdma_memory_domain(int index) {
  return atomic_load(&ids[index]);
}

void lane_memory_want(bool is_wanted) {
  if (is_wanted) {
    atomic_fetch_add(&wanting, 1);
  } else {
    atomic_fetch_sub(&wanting, 1);
  }
}

bool lane_memory_is_wanted(void) {
  return atomic_load(&wanting) > 0;
}

/* ---- ranges ---- */

struct lane_memory *lane_memory_register(void *base, size_t bytes, enum lane_memory_rights rights,
                                         const struct lane_dma_buf *dma_buf) {
  struct lane_memory *memory = lane_memory_is_wanted() ? calloc(1, sizeof(*memory)) : NULL;
  if (!memory) {
    return NULL;
  }
  memory->base = base;
  memory->bytes = bytes;
  memory->rights = rights;
  memory->fd = -1;
  if (dma_buf) {
    memory->fd = DESCRIPTOR(fcntl(dma_buf->fd, F_DUPFD_CLOEXEC, 0));
    memory->offset = dma_buf->offset;
  }
  pthread_mutex_lock(&lock);
  list_push_back(&memories, &memory->node);
  for (unsigned i = 0; i < RDMA_DEVICES; i++) {
    register_with(memory, &domains[i]);
  }
  pthread_mutex_unlock(&lock);
  return memory;
}

void lane_memory_free(struct lane_memory *memory) {
  if (!memory) {
    return;
  }
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < RDMA_DEVICES; i++) {
    if (domains[i].api) {
      deregister_from(memory, &domains[i]);
    }
  }
  list_remove(&memory->node);
  pthread_mutex_unlock(&lock);
  if (memory->fd >= 0) {
    descriptor_close(memory->fd);
  }
  free(memory);
}

bool lane_memory_covers(const struct lane_memory *memory, const void *data, size_t bytes) {
  uintptr_t base = (uintptr_t)memory->base, at = (uintptr_t)data;
  return at >= base && bytes <= memory->bytes && at - base <= memory->bytes - bytes;
}

bool rdma_memory_keys(const struct lane_memory *memory, int domain, uint32_t *local,
                      uint32_t *remote) {
  uint64_t keys = atomic_load_explicit(&memory->keys[domain], memory_order_acquire);
  *local = (uint32_t)(keys >> 32);
  *remote = (uint32_t)keys;
  return keys != 0;
}

uint32_t lane_memory_remote_key(const struct lane_memory *memory, struct lane_domain domain) {
  uint32_t local, remote;
  bool is_there = domain.id && rdma_memory_domain(domain.index) == domain.id;
  return is_there && rdma_memory_keys(memory, domain.index, &local, &remote) ? remote : 0;
}
