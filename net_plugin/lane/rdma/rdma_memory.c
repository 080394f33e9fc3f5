/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_memory.h. Keys are published as one word each, so that who posts work needs no lock; the
 * registrations behind them are the lock's. */
#include "net_plugin/lane/rdma/rdma_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/list.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_device.h"
#include "net_plugin/lane/rdma/rdma_worker.h"

struct lane_memory {
  uint8_t *base;
  size_t bytes;
  enum lane_memory_rights rights;
  int fd; /* of its dma-buf, -1: none */
  uint64_t offset;
  struct ibv_mr *registrations[RDMA_DOMAINS];
  uint32_t tried;                      /* a bit for each domain: registered there, or refused */
  _Atomic uint64_t keys[RDMA_DOMAINS]; /* local in the upper half, remote in the lower; 0: none */
  struct list_node node;
  struct rdma_job job; /* of a link's memory */
};

struct domain {
  struct rdma_device *device; /* NULL: free */
  uint32_t id;
  unsigned users;
  bool is_retired; /* being closed */
  bool is_revoked; /* no peer may write there any more */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock; ids and the counts are also read without it. */
static struct domain domains[RDMA_DOMAINS];
static _Atomic uint32_t ids[RDMA_DOMAINS];
static atomic_uint wanting; /* connections */
static uint32_t last_id;
static struct list memories = { { &memories.head, &memories.head } };

/* ---- registrations, with the lock held ---- */

/* The order in which the parts of a write become visible is of no interest before its completion,
 * and devices are faster when they need not keep it. */
static struct ibv_mr *register_range(const struct lane_memory *memory,
                                     const struct rdma_device *device) {
  /* Devices may always read for their own host. */
  int access =
      memory->rights == LANE_MEMORY_REMOTE ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  const struct verbs_api *api = device->api;
  if (memory->fd >= 0 && api->reg_dmabuf_mr) {
    struct ibv_mr *mr = api->reg_dmabuf_mr(device->pd, memory->offset, memory->bytes,
                                           (uintptr_t)memory->base, memory->fd, access);
    if (mr) {
      return mr;
    }
  }
  if (api->reg_mr_iova2) {
    struct ibv_mr *mr =
        api->reg_mr_iova2(device->pd, memory->base, memory->bytes, (uintptr_t)memory->base,
                          (unsigned)access | IBV_ACCESS_RELAXED_ORDERING);
    if (mr) {
      return mr;
    }
  }
  return api->reg_mr(device->pd, memory->base, memory->bytes, access);
}

static void register_at(struct lane_memory *memory, unsigned at) {
  const struct rdma_device *device = domains[at].device;
  bool is_remote = memory->rights == LANE_MEMORY_REMOTE;
  memory->tried |= 1u << at;
  if (is_remote && domains[at].is_revoked) {
    return;
  }
  struct ibv_mr *mr = register_range(memory, device);
  memory->registrations[at] = mr;
  if (!mr) {
    LOG_WARN_EVERY(RDMA_WARN_INTERVAL_NS,
                   "%s does not register %zu bytes at %p: %s; they are copied instead. Often the "
                   "limit of locked memory is too low (ulimit -l)",
                   device->port.name, memory->bytes, (void *)memory->base, strerror(errno));
    return;
  }
  atomic_store_explicit(&memory->keys[at], (uint64_t)mr->lkey << 32 | (is_remote ? mr->rkey : 0),
                        memory_order_release);
}

/* 0 or errno. */
static int give_up(const struct rdma_device *device, struct ibv_mr *mr) {
  int error = 0;
  for (unsigned tries = 0; tries < RDMA_DESTROY_TRIES; tries++) {
    error = device->api->dereg_mr(mr);
    if (!error) {
      return 0;
    }
  }
  LOG_WARN_EVERY(RDMA_WARN_INTERVAL_NS,
                 "%s cannot deregister memory (ibv_dereg_mr: %s): %zu bytes at %p stay pinned, and "
                 "the device can reach them. Look at the kernel's log, and reload its driver",
                 device->port.name, strerror(error), mr->length, mr->addr);
  return error;
}

/* 0 or errno: then it is still there, without keys. */
static int deregister_at(struct lane_memory *memory, unsigned at) {
  struct ibv_mr *mr = memory->registrations[at];
  memory->tried &= ~(1u << at);
  atomic_store_explicit(&memory->keys[at], 0, memory_order_release);
  int error = mr ? give_up(domains[at].device, mr) : 0;
  memory->registrations[at] = error ? mr : NULL;
  return error;
}

/* Nobody finds the device here any more, but its place is not free yet. Returns its registrations,
 * `count` of them, to be given up without the lock: a driver may take long over it. NULL: there are
 * none, or that is done. */
static struct ibv_mr **domain_retire(unsigned at, size_t *count) {
  size_t most = 0;
  *count = 0;
  domains[at].is_retired = true;
  atomic_store(&domains[at].device->is_attached, false);
  atomic_store(&ids[at], 0);
  LIST_FOR_EACH(node, &memories) {
    most++;
  }
  struct ibv_mr **list = malloc((most + 1) * sizeof(struct ibv_mr *));
  LIST_FOR_EACH(node, &memories) {
    struct lane_memory *memory = LIST_ENTRY(node, struct lane_memory, node);
    if (list && memory->registrations[at]) {
      list[(*count)++] = memory->registrations[at];
      memory->registrations[at] = NULL;
    }
    deregister_at(memory, at);
  }
  return list;
}

/* With the lock held, which is given up meanwhile. */
static void domain_close(unsigned at) {
  size_t count;
  struct rdma_device *device = domains[at].device;
  struct ibv_mr **list = domain_retire(at, &count);
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < count; i++) {
    give_up(device, list[i]);
  }
  free(list);
  rdma_device_close(device);
  pthread_mutex_lock(&lock);
  domains[at] = (struct domain){ .device = NULL };
}

static struct lane_memory *find_untried(unsigned at) {
  LIST_FOR_EACH(node, &memories) {
    struct lane_memory *memory = LIST_ENTRY(node, struct lane_memory, node);
    if (!(memory->tried >> at & 1)) {
      return memory;
    }
  }
  return NULL;
}

/* The lock is given up between ranges, which may come and go meanwhile. `users` keeps the domain.
 */
static void domain_open(unsigned at, struct rdma_device *device) {
  struct lane_memory *memory;
  rdma_device_hold(device);
  domains[at] = (struct domain){ .device = device, .id = ++last_id, .users = 1 };
  atomic_store(&ids[at], last_id);
  atomic_store(&device->is_attached, true);
  while ((memory = find_untried(at))) {
    register_at(memory, at);
    pthread_mutex_unlock(&lock);
    sched_yield();
    pthread_mutex_lock(&lock);
  }
}

static int find_domain(const struct rdma_device *device) {
  for (unsigned at = 0; at < RDMA_DOMAINS; at++) {
    if (domains[at].device == device && !(device && domains[at].is_retired)) {
      return (int)at;
    }
  }
  return -ENOSPC;
}

/* ---- devices ---- */

int rdma_memory_attach(struct rdma_device *device) {
  pthread_mutex_lock(&lock);
  int at = find_domain(device);
  if (at >= 0) {
    domains[at].users++;
  } else {
    at = find_domain(NULL);
    if (at >= 0) {
      domain_open((unsigned)at, device);
    }
  }
  pthread_mutex_unlock(&lock);
  return at;
}

int rdma_memory_revoke(int domain) {
  int error = 0;
  pthread_mutex_lock(&lock);
  domains[domain].is_revoked = true;
  LIST_FOR_EACH(node, &memories) {
    struct lane_memory *memory = LIST_ENTRY(node, struct lane_memory, node);
    int failed = memory->rights == LANE_MEMORY_REMOTE ? deregister_at(memory, (unsigned)domain) : 0;
    error = error ? error : failed;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

void rdma_memory_detach(int domain) {
  pthread_mutex_lock(&lock);
  struct domain *left = &domains[domain];
  if (--left->users == 0 && atomic_load(&left->device->is_lost)) {
    domain_close((unsigned)domain);
  }
  pthread_mutex_unlock(&lock);
}

uint32_t rdma_memory_domain_id(int domain) {
  return atomic_load(&ids[domain]);
}

void rdma_memory_release(bool is_all) {
  pthread_mutex_lock(&lock);
  for (unsigned at = 0; at < RDMA_DOMAINS; at++) {
    const struct domain *domain = &domains[at];
    if (domain->device && domain->users == 0 && !domain->is_retired &&
        (is_all || atomic_load(&domain->device->is_lost))) {
      domain_close(at);
    }
  }
  pthread_mutex_unlock(&lock);
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

static struct lane_memory *memory_new(void *base, size_t bytes, enum lane_memory_rights rights) {
  struct lane_memory *memory = lane_memory_is_wanted() ? calloc(1, sizeof(*memory)) : NULL;
  if (memory) {
    memory->base = base;
    memory->bytes = bytes;
    memory->rights = rights;
    memory->fd = -1;
  }
  return memory;
}

static void register_everywhere(struct lane_memory *memory) {
  pthread_mutex_lock(&lock);
  list_push_back(&memories, &memory->node);
  for (unsigned at = 0; at < RDMA_DOMAINS; at++) {
    if (domains[at].device && !domains[at].is_retired) {
      register_at(memory, at);
    }
  }
  pthread_mutex_unlock(&lock);
}

struct lane_memory *lane_memory_register(void *base, size_t bytes, enum lane_memory_rights rights,
                                         const struct lane_dma_buf *dma_buf) {
  struct lane_memory *memory = memory_new(base, bytes, rights);
  if (!memory) {
    return NULL;
  }
  if (dma_buf) {
    memory->fd = DESCRIPTOR(fcntl(dma_buf->fd, F_DUPFD_CLOEXEC, 0));
    memory->offset = dma_buf->offset;
  }
  register_everywhere(memory);
  return memory;
}

void lane_memory_free(struct lane_memory *memory) {
  if (!memory) {
    return;
  }
  pthread_mutex_lock(&lock);
  for (unsigned at = 0; at < RDMA_DOMAINS; at++) {
    if (domains[at].device) {
      deregister_at(memory, at);
    }
  }
  list_remove(&memory->node);
  pthread_mutex_unlock(&lock);
  if (memory->fd >= 0) {
    descriptor_close(memory->fd);
  }
  free(memory);
}

/* ---- of links ---- */

static bool register_link(struct rdma_job *job) {
  register_everywhere(LIST_ENTRY(job, struct lane_memory, job));
  return true;
}

struct lane_memory *lane_memory_register_link(void *base, size_t bytes) {
  struct lane_memory *memory = memory_new(base, bytes, LANE_MEMORY_LOCAL);
  if (memory) {
    memory->job.run = register_link;
    rdma_worker_submit(RDMA_QUEUE_LINKS, NULL, &memory->job);
  }
  return memory;
}

static bool unmap_link(struct rdma_job *job) {
  struct lane_memory *memory = LIST_ENTRY(job, struct lane_memory, job);
  void *base = memory->base;
  size_t bytes = memory->bytes;
  lane_memory_free(memory);
  munmap(base, bytes);
  return true;
}

/* If it is being registered, that is done before: the queue is the same. */
void lane_memory_unmap_link(struct lane_memory *memory) {
  if (rdma_worker_take_back(&memory->job)) {
    munmap(memory->base, memory->bytes);
    free(memory);
    return;
  }
  memory->job.run = unmap_link;
  rdma_worker_submit(RDMA_QUEUE_LINKS, NULL, &memory->job);
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
  bool is_there = domain.id && rdma_memory_domain_id(domain.index) == domain.id;
  return is_there && rdma_memory_keys(memory, domain.index, &local, &remote) ? remote : 0;
}
