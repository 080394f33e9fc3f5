/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake provider's devices share with their users: registered memory and completions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/fake_verbs_state.h"

/* ---- protection domains, registrations ---- */

struct ibv_pd *fake_alloc_pd(struct ibv_context *context) {
  int error = fake_begin_on(context, FAKE_ALLOC_PD);
  struct fake_pd *pd = error ? NULL : calloc(1, sizeof(*pd));
  if (pd) {
    pd->base.context = context;
    fake.counts.pds++;
  }
  fake_end(error);
  return pd ? &pd->base : NULL;
}

int fake_dealloc_pd(struct ibv_pd *base) {
  struct fake_pd *pd = (struct fake_pd *)base;
  int error = fake_begin(FAKE_DEALLOC_PD);
  error = pd->users ? EBUSY : error;
  if (!error) {
    fake.counts.pds--;
    free(pd);
  }
  return fake_end(error);
}

char *fake_mr_find(const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t bytes,
                   int access) {
  for (struct fake_mr *mr = fake.mrs; mr; mr = mr->next) {
    uint64_t base = (uintptr_t)mr->base.addr;
    if (mr->base.lkey == key && mr->base.pd == pd) {
      bool is_inside =
          address >= base && bytes <= mr->base.length && address - base <= mr->base.length - bytes;
      return is_inside && (mr->access & access) == access ? (char *)(uintptr_t)address : NULL;
    }
  }
  return NULL;
}

struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access) {
  int error = fake_begin_on(pd->context, FAKE_REG_MR);
  bool is_wrong = access == IBV_ACCESS_REMOTE_WRITE || (access & IBV_ACCESS_OPTIONAL_RANGE);
  error = error ? error : is_wrong ? EINVAL : 0;
  struct fake_mr *mr = error ? NULL : calloc(1, sizeof(*mr));
  if (mr) {
    mr->base.context = pd->context;
    mr->base.pd = pd;
    mr->base.addr = address;
    mr->base.length = bytes;
    mr->base.lkey = mr->base.rkey = fake.next_key;
    fake.next_key += 0x101; /* a key that is given back is not given out again */
    mr->access = access;
    mr->next = fake.mrs;
    fake.mrs = mr;
    ((struct fake_pd *)pd)->users++;
    fake.counts.mrs++;
  }
  fake_end(error);
  return mr ? &mr->base : NULL;
}

struct ibv_mr *fake_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova,
                                 unsigned access) {
  if (fake_device_of(pd->context)->hca->has_no_iova2 || iova != (uintptr_t)address) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  return fake_reg_mr(pd, address, bytes, (int)(access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE));
}

/* As on rdma-core before 34. */
struct ibv_mr *fake_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                  int fd, int access) {
  errno = EOPNOTSUPP;
  return NULL;
}

int fake_dereg_mr(struct ibv_mr *base) {
  int error = fake_begin(FAKE_DEREG_MR);
  struct fake_mr **place = &fake.mrs;
  while (*place && &(*place)->base != base) {
    place = &(*place)->next;
  }
  if (!*place) {
    fake_fatal("a registration is given back twice");
  }
  if (!error) {
    struct fake_mr *mr = *place;
    *place = mr->next;
    ((struct fake_pd *)mr->base.pd)->users--;
    fake.counts.mrs--;
    free(mr);
  }
  return fake_end(error);
}

/* ---- completion channels ---- */

struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *context) {
  int error = fake_begin_on(context, FAKE_CREATE_CHANNEL);
  struct fake_channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  if (channel) {
    channel->base.context = context;
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    fake.counts.channels++;
  }
  fake_end(error);
  return channel ? &channel->base : NULL;
}

int fake_destroy_comp_channel(struct ibv_comp_channel *base) {
  struct fake_channel *channel = (struct fake_channel *)base;
  int error = fake_begin(FAKE_DESTROY_CHANNEL);
  error = channel->cq ? EBUSY : error;
  if (!error) {
    fake.counts.channels--;
    close(base->fd);
    free(channel);
  }
  return fake_end(error);
}

int fake_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq, void **cq_context) {
  struct fake_cq *found = ((struct fake_channel *)base)->cq;
  uint64_t one;
  if (read(base->fd, &one, sizeof(one)) != sizeof(one)) {
    return -1;
  }
  pthread_mutex_lock(&fake.lock);
  found->unacknowledged++;
  *cq = &found->base;
  *cq_context = NULL;
  pthread_mutex_unlock(&fake.lock);
  return 0;
}

void fake_ack_cq_events(struct ibv_cq *base, unsigned events) {
  pthread_mutex_lock(&fake.lock);
  ((struct fake_cq *)base)->unacknowledged -= events;
  pthread_mutex_unlock(&fake.lock);
}

/* ---- completion queues ---- */

struct ibv_cq *fake_create_cq(struct ibv_context *context, int entries, void *cq_context,
                              struct ibv_comp_channel *channel, int vector) {
  int error = fake_begin_on(context, FAKE_CREATE_CQ);
  struct fake_cq *cq = error ? NULL : calloc(1, sizeof(*cq));
  if (cq) {
    cq->base.context = context;
    cq->base.channel = channel;
    cq->base.cqe = entries;
    cq->ring = calloc((size_t)entries, sizeof(*cq->ring));
    cq->channel = (struct fake_channel *)channel;
    cq->channel->cq = cq;
    fake.counts.cqs++;
  }
  fake_end(error);
  return cq ? &cq->base : NULL;
}

/* Events that nobody has fetched stay readable, until the channel goes, too. */
int fake_destroy_cq(struct ibv_cq *base) {
  struct fake_cq *cq = (struct fake_cq *)base;
  int error = fake_begin(FAKE_DESTROY_CQ);
  error = cq->users ? EBUSY : error;
  if (!error) {
    if (cq->unacknowledged) {
      fake_fatal("a completion queue is destroyed with events not acknowledged: the real library "
                 "waits forever");
    }
    cq->channel->cq = NULL;
    fake.counts.cqs--;
    free(cq->ring);
    free(cq);
  }
  return fake_end(error);
}

int fake_req_notify_cq(struct ibv_cq *base, int is_solicited_only) {
  int error = fake_begin(FAKE_REQ_NOTIFY);
  ((struct fake_cq *)base)->is_armed |= !error && !is_solicited_only;
  return fake_end(error);
}

void fake_cq_push(struct fake_cq *cq, const struct fake_completion *completion) {
  unsigned entries = (unsigned)cq->base.cqe;
  if (cq->count == entries) {
    fake_fatal("a completion queue of %u entries is overrun", entries);
  }
  cq->ring[(cq->head + cq->count++) % entries] = *completion;
  if (cq->is_armed) {
    cq->is_armed = false;
    eventfd_write(cq->channel->base.fd, 1);
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
  if (fake_begin(FAKE_POLL_CQ)) {
    pthread_mutex_unlock(&fake.lock);
    return -1;
  }
  for (; taken < most && cq->count > 0; taken++, cq->count--) {
    struct fake_completion *it = &cq->ring[cq->head];
    wc[taken] = it->wc;
    if (it->qp) {
      (it->is_send ? &it->qp->sends : &it->qp->receives)->polled = it->sequence + 1;
    }
    cq->head = (cq->head + 1) % (unsigned)cq->base.cqe;
  }
  pthread_mutex_unlock(&fake.lock);
  return taken;
}
