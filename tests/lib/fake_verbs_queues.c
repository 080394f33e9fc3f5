/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs: made, moved from state to state, given requests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/fake_verbs_state.h"

static const struct fake_hca *hca_of(const struct ibv_qp *qp) {
  return fake_context_of(qp->context)->device->hca;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise) {
  return value ? value : otherwise;
}

/* ---- making ---- */

static int check_caps(const struct fake_hca *hca, const struct ibv_qp_init_attr *init) {
  const struct ibv_qp_cap *cap = &init->cap;
  uint32_t max_wr = or_default(hca->max_qp_wr, 4096);
  if (init->qp_type != IBV_QPT_RC || !init->send_cq || !init->recv_cq || init->srq) {
    return EINVAL;
  }
  bool fits = cap->max_send_wr >= 1 && cap->max_send_wr <= max_wr && cap->max_recv_wr <= max_wr &&
              cap->max_send_sge <= or_default(hca->max_send_sge, 16) &&
              cap->max_recv_sge <= or_default(hca->max_recv_sge, 16) &&
              cap->max_inline_data <= or_default(hca->max_inline, 256);
  return fits ? 0 : EINVAL;
}

static bool make_queue(struct fake_queue *queue, uint32_t capacity) {
  queue->capacity = capacity;
  queue->ring = calloc(capacity ? capacity : 1, sizeof(*queue->ring));
  return queue->ring != NULL;
}

static void free_qp(struct fake_qp *qp) {
  free(qp->sends.ring);
  free(qp->receives.ring);
  free(qp);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
  struct fake_context *context = fake_context_of(pd->context);
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CREATE_QP);
  error = context->device->is_removed ? EIO : error;
  error = error ? error : check_caps(context->device->hca, init);
  struct fake_qp *qp = error ? NULL : calloc(1, sizeof(*qp));
  if (qp && !(make_queue(&qp->sends, init->cap.max_send_wr) &&
              make_queue(&qp->receives, init->cap.max_recv_wr))) {
    free_qp(qp);
    qp = NULL;
  }
  if (qp) {
    qp->cap = init->cap;
    qp->base.context = pd->context;
    qp->base.qp_context = init->qp_context;
    qp->base.pd = pd;
    qp->base.send_cq = init->send_cq;
    qp->base.recv_cq = init->recv_cq;
    qp->base.qp_type = init->qp_type;
    qp->base.qp_num = fake.next_qp_num++;
    qp->base.state = qp->state = IBV_QPS_RESET;
    ((struct fake_pd *)pd)->users++;
    ((struct fake_cq *)init->send_cq)->users++;
    ((struct fake_cq *)init->recv_cq)->users++;
    qp->next = fake.qps;
    fake.qps = qp;
    fake.counts.qps++;
  }
  pthread_mutex_unlock(&fake.lock);
  errno = error ? error : errno;
  return qp ? &qp->base : NULL;
}

/* As the real library, waits for who looks at an event about it; but not for ever. */
static void wait_for_acknowledgements(struct fake_qp *qp) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 5;
  fake_context_forget(fake_context_of(qp->base.context), &qp->base);
  while (qp->unacknowledged) {
    if (pthread_cond_timedwait(&fake.is_acknowledged, &fake.lock, &until)) {
      fake_fatal(
          "a queue pair is destroyed with %u events not acknowledged: the real library waits "
          "forever",
          qp->unacknowledged);
    }
  }
}

static int destroy_qp(struct ibv_qp *base) {
  struct fake_qp *qp = (struct fake_qp *)base;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_DESTROY_QP);
  if (error && !fake_context_of(base->context)->device->is_removed) {
    pthread_mutex_unlock(&fake.lock);
    return error;
  }
  wait_for_acknowledgements(qp);
  struct fake_qp **place = &fake.qps;
  while (*place && *place != qp) {
    place = &(*place)->next;
  }
  if (!*place) {
    fake_fatal("a queue pair is destroyed twice");
  }
  *place = qp->next;
  fake_cq_forget((struct fake_cq *)base->send_cq, qp);
  fake_cq_forget((struct fake_cq *)base->recv_cq, qp);
  ((struct fake_cq *)base->send_cq)->users--;
  ((struct fake_cq *)base->recv_cq)->users--;
  ((struct fake_pd *)base->pd)->users--;
  fake.counts.qps--;
  pthread_mutex_unlock(&fake.lock);
  free_qp(qp);
  return 0;
}

struct fake_qp *fake_qp_find(uint32_t number) {
  for (struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    if (qp->base.qp_num == number) {
      return qp;
    }
  }
  return NULL;
}

/* ---- states ---- */

static void flush(struct fake_qp *qp, bool is_send) {
  struct fake_queue *queue = is_send ? &qp->sends : &qp->receives;
  while (queue->done < queue->posted) {
    const struct fake_request *request = &queue->ring[queue->done % queue->capacity];
    struct ibv_wc wc = { .wr_id = request->wr_id, .status = IBV_WC_WR_FLUSH_ERR };
    fake_work_complete(qp, is_send, request, &wc);
  }
}

void fake_qp_break(struct fake_qp *qp) {
  qp->state = IBV_QPS_ERR;
  flush(qp, true);
  flush(qp, false);
}

/* What a move wants to be told, beside IBV_QP_STATE. */
static int wanted_attributes(const struct fake_qp *qp, enum ibv_qp_state to) {
  enum ibv_qp_state from = qp->state;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) {
    int always = IBV_QP_ACCESS_FLAGS;
    return hca_of(&qp->base)->is_iwarp ? always : always | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return 0;
}

/* Up, one after the other; INIT and RTS again; ERR from anywhere. */
static bool is_move(enum ibv_qp_state from, enum ibv_qp_state to) {
  return to == IBV_QPS_ERR || (from < IBV_QPS_RTS && to == from + 1) ||
         (to == from && (to == IBV_QPS_INIT || to == IBV_QPS_RTS));
}

static void keep_attributes(struct fake_qp *qp, const struct ibv_qp_attr *from, int mask) {
  struct ibv_qp_attr *to = &qp->attributes;
  if (mask & IBV_QP_ACCESS_FLAGS) {
    to->qp_access_flags = from->qp_access_flags;
  }
  if (mask & IBV_QP_DEST_QPN) {
    to->dest_qp_num = from->dest_qp_num;
    to->rq_psn = from->rq_psn;
  }
  if (mask & IBV_QP_SQ_PSN) {
    to->sq_psn = from->sq_psn;
  }
}

int fake_qp_modify(struct fake_qp *qp, const struct ibv_qp_attr *attributes, int mask) {
  enum ibv_qp_state to = mask & IBV_QP_STATE ? attributes->qp_state : qp->state;
  int wanted = qp->state == to ? 0 : wanted_attributes(qp, to);
  if (!is_move(qp->state, to) || (mask & wanted) != wanted || mask >= IBV_QP_DEST_QPN << 1) {
    return EINVAL;
  }
  keep_attributes(qp, attributes, mask);
  if (to == IBV_QPS_ERR) {
    fake_qp_break(qp);
  }
  qp->state = to;
  qp->base.state = to;
  return 0;
}

static int modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attributes, int mask) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_MODIFY_QP);
  bool is_dead = fake_context_of(base->context)->device->is_removed;
  /* iWARP's are connected by librdmacm, in the kernel: what it says for RTR changes nothing. */
  bool is_iwarp = hca_of(base)->is_iwarp && (mask & IBV_QP_STATE);
  bool is_by_hand = is_iwarp && (attributes->qp_state == IBV_QPS_RTS || (mask & IBV_QP_AV));
  bool is_nothing = is_iwarp && !is_by_hand && attributes->qp_state == IBV_QPS_RTR;
  if ((mask & IBV_QP_STATE) && attributes->qp_state == IBV_QPS_ERR) {
    int stop_error = fake_call_fault(FAKE_STOP_QP);
    error = error ? error : stop_error;
    ((struct fake_qp *)base)->is_stop_refused |= error != 0;
  }
  error = is_dead ? EIO : error ? error : is_by_hand ? EINVAL : 0;
  error = error || is_nothing ? error : fake_qp_modify((struct fake_qp *)base, attributes, mask);
  fake_work_all(); /* others may have waited for this one */
  pthread_mutex_unlock(&fake.lock);
  return error;
}

/* ---- requests ---- */

static int take_sges(struct fake_request *request, const struct ibv_sge *sges, int count,
                     uint32_t most) {
  if (count < 0 || (uint32_t)count > most || count > FAKE_SGES_MAX) {
    return EINVAL;
  }
  request->sge_count = count;
  if (count) {
    memcpy(request->sges, sges, sizeof(*sges) * (size_t)count);
  }
  return 0;
}

/* The bytes are the sender's own again when post_send returns. */
static int take_inline(struct fake_request *request, uint32_t most) {
  for (int i = 0; i < request->sge_count; i++) {
    const struct ibv_sge *sge = &request->sges[i];
    if (request->inline_bytes + sge->length > most ||
        request->inline_bytes + sge->length > FAKE_INLINE_MAX) {
      return ENOMEM;
    }
    memcpy(request->inline_data + request->inline_bytes, (const void *)(uintptr_t)sge->addr,
           sge->length);
    request->inline_bytes += sge->length;
  }
  request->sge_count = 0;
  return 0;
}

static bool is_known(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static int add_send(struct fake_qp *qp, const struct ibv_send_wr *wr) {
  struct fake_queue *queue = &qp->sends;
  if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) || !is_known(wr->opcode)) {
    return EINVAL;
  }
  if (queue->posted - queue->polled >= queue->capacity) {
    return ENOMEM;
  }
  struct fake_request *request = &queue->ring[queue->posted % queue->capacity];
  *request = (struct fake_request){
    .wr_id = wr->wr_id,
    .opcode = wr->opcode,
    .flags = wr->send_flags,
    .imm = wr->imm_data,
    .remote_address = wr->wr.rdma.remote_addr,
    .rkey = wr->wr.rdma.rkey,
  };
  int error = take_sges(request, wr->sg_list, wr->num_sge, qp->cap.max_send_sge);
  if (!error && (wr->send_flags & IBV_SEND_INLINE)) {
    error = take_inline(request, qp->cap.max_inline_data);
  }
  queue->posted += error == 0;
  return error;
}

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct fake_qp *qp = (struct fake_qp *)base;
  int error = 0;
  pthread_mutex_lock(&fake.lock);
  for (; wr && !error; wr = wr->next) {
    error = fake_call_fault(FAKE_POST_SEND);
    error = error ? error : add_send(qp, wr);
    *bad = error ? wr : *bad;
  }
  if (qp->state == IBV_QPS_ERR) {
    flush(qp, true);
  }
  fake_work_all();
  pthread_mutex_unlock(&fake.lock);
  return error;
}

static int add_receive(struct fake_qp *qp, const struct ibv_recv_wr *wr) {
  struct fake_queue *queue = &qp->receives;
  if (qp->state == IBV_QPS_RESET) {
    return EINVAL;
  }
  if (queue->posted - queue->polled >= queue->capacity) {
    return ENOMEM;
  }
  struct fake_request *request = &queue->ring[queue->posted % queue->capacity];
  *request = (struct fake_request){ .wr_id = wr->wr_id };
  int error = take_sges(request, wr->sg_list, wr->num_sge, qp->cap.max_recv_sge);
  queue->posted += error == 0;
  return error;
}

int fake_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct fake_qp *qp = (struct fake_qp *)base;
  int error = 0;
  pthread_mutex_lock(&fake.lock);
  for (; wr && !error; wr = wr->next) {
    error = fake_call_fault(FAKE_POST_RECV);
    error = error ? error : add_receive(qp, wr);
    *bad = error ? wr : *bad;
  }
  if (qp->state == IBV_QPS_ERR) {
    flush(qp, false);
  }
  fake_work_all();
  pthread_mutex_unlock(&fake.lock);
  return error;
}

void fake_verbs_fill_queues(struct verbs_api *api) {
  api->create_qp = create_qp;
  api->modify_qp = modify_qp;
  api->destroy_qp = destroy_qp;
}
