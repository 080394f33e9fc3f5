/* SPDX-License-Identifier: Apache-2.0 */
/* Protection domains, registrations, completion channels and queues. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/fake_verbs_state.h"

static bool is_removed(struct ibv_context *context) {
  return fake_context_of(context)->device->is_removed;
}

/* ---- protection domains ---- */

static struct ibv_pd *alloc_pd(struct ibv_context *context) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_ALLOC_PD);
  error = is_removed(context) ? EIO : error;
  struct fake_pd *pd = error ? NULL : calloc(1, sizeof(*pd));
  if (pd) {
    pd->base.context = context;
    pd->next = fake.pds;
    fake.pds = pd;
    fake.counts.pds++;
  }
  pthread_mutex_unlock(&fake.lock);
  errno = error ? error : errno;
  return pd ? &pd->base : NULL;
}

static int dealloc_pd(struct ibv_pd *base) {
  struct fake_pd *pd = (struct fake_pd *)base;
  pthread_mutex_lock(&fake.lock);
  struct fake_pd **place = &fake.pds;
  int error = fake_call_fault(FAKE_DEALLOC_PD);
  error = pd->users ? EBUSY : error;
  while (*place != pd) {
    place = &(*place)->next;
  }
  if (!error) {
    *place = pd->next;
    fake.counts.pds--;
    free(pd);
  }
  pthread_mutex_unlock(&fake.lock);
  return error;
}

/* ---- registrations ---- */

struct fake_mr *fake_mr_find(const struct ibv_pd *pd, uint32_t key, uint64_t address,
                             uint64_t bytes, int access) {
  for (struct fake_mr *mr = fake.mrs; mr; mr = mr->next) {
    if (mr->base.lkey == key && mr->base.pd == pd) {
      bool is_inside = address >= mr->iova && bytes <= mr->base.length &&
                       address - mr->iova <= mr->base.length - bytes;
      return is_inside && (mr->access & access) == access ? mr : NULL;
    }
  }
  return NULL;
}

static int check_access(int access) {
  bool is_remote_write = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  return is_remote_write && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

/* Takes the lock. `mapping` is given back by dereg_mr. */
static struct ibv_mr *add_mr(struct ibv_pd *pd, enum fake_call call, char *memory, size_t bytes,
                             uint64_t iova, int access, void *mapping, size_t mapping_bytes) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(call);
  error = is_removed(pd->context) ? EIO : error ? error : check_access(access);
  struct fake_mr *mr = error ? NULL : calloc(1, sizeof(*mr));
  if (mr) {
    mr->base.context = pd->context;
    mr->base.pd = pd;
    mr->base.addr = mapping ? NULL : memory;
    mr->base.length = bytes;
    mr->base.lkey = mr->base.rkey = fake.next_key;
    fake.next_key += 0x101; /* a key that is given back is not given out again */
    mr->memory = memory;
    mr->iova = iova;
    mr->access = access;
    mr->mapping = mapping;
    mr->mapping_bytes = mapping_bytes;
    mr->next = fake.mrs;
    fake.mrs = mr;
    ((struct fake_pd *)pd)->users++;
    fake.counts.mrs++;
  }
  pthread_mutex_unlock(&fake.lock);
  errno = error ? error : errno;
  return mr ? &mr->base : NULL;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access) {
  if (access & IBV_ACCESS_OPTIONAL_RANGE) {
    errno = EINVAL;
    return NULL;
  }
  return add_mr(pd, FAKE_REG_MR, address, bytes, (uint64_t)(uintptr_t)address, access, NULL, 0);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova,
                                   unsigned access) {
  if (fake_context_of(pd->context)->device->hca->has_no_iova2) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  return add_mr(pd, FAKE_REG_MR, address, bytes, iova, (int)access, NULL, 0);
}

/* Any descriptor that can be mapped will do, as of memfd_create. */
static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access) {
  if (fake_context_of(pd->context)->device->hca->has_no_dmabuf) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  size_t mapping_bytes = (size_t)offset + bytes;
  char *mapping = mmap(NULL, mapping_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) {
    return NULL;
  }
  struct ibv_mr *mr =
      add_mr(pd, FAKE_REG_DMABUF_MR, mapping + offset, bytes, iova, access, mapping, mapping_bytes);
  if (!mr) {
    int error = errno;
    munmap(mapping, mapping_bytes);
    errno = error;
  }
  return mr;
}

static int dereg_mr(struct ibv_mr *base) {
  pthread_mutex_lock(&fake.lock);
  struct fake_mr **place = &fake.mrs;
  while (*place && &(*place)->base != base) {
    place = &(*place)->next;
  }
  if (!*place) {
    fake_fatal("a registration is given back twice");
  }
  int error = fake_call_fault(FAKE_DEREG_MR);
  if (error) {
    pthread_mutex_unlock(&fake.lock);
    return error;
  }
  struct fake_mr *mr = *place;
  *place = mr->next;
  ((struct fake_pd *)mr->base.pd)->users--;
  fake.counts.mrs--;
  pthread_mutex_unlock(&fake.lock);
  if (mr->mapping) {
    munmap(mr->mapping, mr->mapping_bytes);
  }
  free(mr);
  return 0;
}

/* ---- completion channels ---- */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CREATE_CHANNEL);
  error = is_removed(context) ? EIO : error;
  struct fake_channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  int fd = channel ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : -1;
  if (fd < 0) {
    errno = error ? error : errno;
    free(channel);
    channel = NULL;
  } else {
    channel->base.context = context;
    channel->base.fd = fd;
    fake.counts.channels++;
  }
  pthread_mutex_unlock(&fake.lock);
  return channel ? &channel->base : NULL;
}

static int destroy_comp_channel(struct ibv_comp_channel *base) {
  struct fake_channel *channel = (struct fake_channel *)base;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_DESTROY_CHANNEL);
  error = channel->users ? EBUSY : error;
  fake.counts.channels -= error == 0;
  pthread_mutex_unlock(&fake.lock);
  if (!error) {
    close(channel->base.fd);
    free(channel);
  }
  return error;
}

static int get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq, void **cq_context) {
  struct fake_channel *channel = (struct fake_channel *)base;
  uint64_t one;
  if (read(base->fd, &one, sizeof(one)) != sizeof(one)) {
    return -1;
  }
  pthread_mutex_lock(&fake.lock);
  struct fake_cq *found = channel->queue[channel->head];
  channel->head = (channel->head + 1) % FAKE_EVENTS_MAX;
  channel->count--;
  found->unacknowledged++;
  *cq = &found->base;
  *cq_context = found->base.cq_context;
  pthread_mutex_unlock(&fake.lock);
  return 0;
}

static void push_event(struct fake_cq *cq) {
  struct fake_channel *channel = cq->channel;
  cq->is_armed = false;
  if (channel->count == FAKE_EVENTS_MAX) {
    fake_fatal("nobody reads the events of a completion channel");
  }
  channel->queue[(channel->head + channel->count++) % FAKE_EVENTS_MAX] = cq;
  eventfd_write(channel->base.fd, 1);
}

/* What nobody has fetched goes with the queue. */
static void drop_events(struct fake_cq *cq) {
  struct fake_channel *channel = cq->channel;
  unsigned kept = 0, count = channel->count;
  for (unsigned i = 0; i < count; i++) {
    struct fake_cq *it = channel->queue[(channel->head + i) % FAKE_EVENTS_MAX];
    if (it != cq) {
      channel->queue[(channel->head + kept++) % FAKE_EVENTS_MAX] = it;
      continue;
    }
    uint64_t one;
    if (read(channel->base.fd, &one, sizeof(one)) != sizeof(one)) {
      fake_fatal("an event was fetched while its completion queue was destroyed");
    }
  }
  channel->count = kept;
}

/* ---- completion queues ---- */

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int vector) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CREATE_CQ);
  if (is_removed(context)) {
    error = EIO;
  } else if (entries < 1 || entries > 65536 || vector != 0) {
    error = EINVAL;
  }
  struct fake_cq *cq = error ? NULL : calloc(1, sizeof(*cq));
  struct fake_completion *ring = cq ? calloc((size_t)entries, sizeof(*ring)) : NULL;
  if (!ring) {
    errno = error ? error : ENOMEM;
    free(cq);
    cq = NULL;
  } else {
    cq->base.context = context;
    cq->base.channel = channel;
    cq->base.cq_context = cq_context;
    cq->base.cqe = entries;
    cq->ring = ring;
    cq->channel = (struct fake_channel *)channel;
    if (channel) {
      cq->channel->users++;
    }
    cq->next = fake.cqs;
    fake.cqs = cq;
    fake.counts.cqs++;
  }
  pthread_mutex_unlock(&fake.lock);
  return cq ? &cq->base : NULL;
}

static int destroy_cq(struct ibv_cq *base) {
  struct fake_cq *cq = (struct fake_cq *)base;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_DESTROY_CQ);
  error = cq->users ? EBUSY : error;
  if (error) {
    pthread_mutex_unlock(&fake.lock);
    return error;
  }
  if (cq->unacknowledged) {
    fake_fatal("a completion queue is destroyed with %u events not acknowledged: the real library "
               "waits forever",
               cq->unacknowledged);
  }
  struct fake_cq **place = &fake.cqs;
  while (*place != cq) {
    place = &(*place)->next;
  }
  *place = cq->next;
  if (cq->channel) {
    drop_events(cq);
    cq->channel->users--;
  }
  fake.counts.cqs--;
  pthread_mutex_unlock(&fake.lock);
  free(cq->ring);
  free(cq);
  return 0;
}

static void ack_cq_events(struct ibv_cq *base, unsigned events) {
  struct fake_cq *cq = (struct fake_cq *)base;
  pthread_mutex_lock(&fake.lock);
  if (events > cq->unacknowledged) {
    fake_fatal("more events are acknowledged than there were");
  }
  cq->unacknowledged -= events;
  pthread_mutex_unlock(&fake.lock);
}

int fake_req_notify_cq(struct ibv_cq *base, int is_solicited_only) {
  struct fake_cq *cq = (struct fake_cq *)base;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_REQ_NOTIFY);
  if (!cq->channel) {
    fake_fatal("events are asked for of a completion queue without a channel");
  }
  cq->is_armed |= !error && !is_solicited_only;
  pthread_mutex_unlock(&fake.lock);
  return error;
}

void fake_cq_push(struct fake_cq *cq, const struct fake_completion *completion) {
  if (cq->count == (unsigned)cq->base.cqe) {
    fake_fatal("a completion queue of %d entries is overrun", cq->base.cqe);
  }
  cq->ring[(cq->head + cq->count++) % (unsigned)cq->base.cqe] = *completion;
  fake.counts.completions++;
  if (cq->is_armed) {
    push_event(cq);
  }
}

void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp) {
  for (unsigned i = 0; i < cq->count; i++) {
    struct fake_completion *it = &cq->ring[(cq->head + i) % (unsigned)cq->base.cqe];
    it->qp = it->qp == qp ? NULL : it->qp;
  }
}

int fake_poll_cq(struct ibv_cq *base, int most, struct ibv_wc *wc) {
  struct fake_cq *cq = (struct fake_cq *)base;
  int taken = 0;
  pthread_mutex_lock(&fake.lock);
  if (fake_call_fault(FAKE_POLL_CQ)) {
    pthread_mutex_unlock(&fake.lock);
    return -1;
  }
  for (; taken < most && cq->count > 0; taken++) {
    struct fake_completion *it = &cq->ring[cq->head];
    wc[taken] = it->wc;
    if (it->qp) {
      struct fake_queue *queue = it->is_send ? &it->qp->sends : &it->qp->receives;
      queue->polled = it->sequence + 1;
    }
    cq->head = (cq->head + 1) % (unsigned)cq->base.cqe;
    cq->count--;
  }
  pthread_mutex_unlock(&fake.lock);
  return taken;
}

void fake_verbs_fill_objects(struct verbs_api *api) {
  api->alloc_pd = alloc_pd;
  api->dealloc_pd = dealloc_pd;
  api->reg_mr = reg_mr;
  api->reg_mr_iova2 = reg_mr_iova2;
  api->reg_dmabuf_mr = reg_dmabuf_mr;
  api->dereg_mr = dereg_mr;
  api->create_comp_channel = create_comp_channel;
  api->destroy_comp_channel = destroy_comp_channel;
  api->create_cq = create_cq;
  api->destroy_cq = destroy_cq;
  api->get_cq_event = get_cq_event;
  api->ack_cq_events = ack_cq_events;
}
