/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs: made, moved from state to state, given requests; and what a card does with those:
 * finds the other queue pair, checks, moves the bytes, completes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fake_verbs_state.h"

enum {
  NONSENSE = 0x5a, /* what the specification leaves undefined in a completion with an error */
  LATE = 0xee,     /* what a late write brings */
};

/* ---- making ---- */

static bool make_queue(struct fake_queue *queue, uint32_t capacity) {
  queue->capacity = capacity;
  queue->ring = calloc(capacity, sizeof(*queue->ring));
  return queue->ring != NULL;
}

static void free_qp(struct fake_qp *qp) {
  free(qp->sends.ring);
  free(qp->receives.ring);
  free(qp);
}

struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
  int error = fake_begin_on(pd->context, FAKE_CREATE_QP);
  uint32_t most = fake_device_of(pd->context)->hca->max_inline;
  bool fits = init->qp_type == IBV_QPT_RC && init->cap.max_send_sge <= FAKE_SGES_MAX &&
              init->cap.max_recv_sge == 1 &&
              init->cap.max_inline_data <= (most ? most : FAKE_INLINE_MAX);
  error = error ? error : fits ? 0 : EINVAL;
  struct fake_qp *qp = error ? NULL : calloc(1, sizeof(*qp));
  if (qp && !(make_queue(&qp->sends, init->cap.max_send_wr) &&
              make_queue(&qp->receives, init->cap.max_recv_wr))) {
    free_qp(qp);
    qp = NULL;
  }
  if (qp) {
    qp->max_inline = init->cap.max_inline_data;
    qp->base.context = pd->context;
    qp->base.pd = pd;
    qp->base.send_cq = init->send_cq;
    qp->base.recv_cq = init->recv_cq;
    qp->base.qp_num = fake.next_qp_num++;
    qp->state = IBV_QPS_RESET;
    ((struct fake_pd *)pd)->users++;
    ((struct fake_cq *)init->send_cq)->users++;
    qp->next = fake.qps;
    fake.qps = qp;
    fake.counts.qps++;
  }
  fake_end(error);
  return qp ? &qp->base : NULL;
}

int fake_destroy_qp(struct ibv_qp *base) {
  struct fake_qp *qp = (struct fake_qp *)base;
  int error = fake_begin(FAKE_DESTROY_QP);
  struct fake_qp **place = &fake.qps;
  while (*place && *place != qp) {
    place = &(*place)->next;
  }
  if (!*place) {
    fake_fatal("a queue pair is destroyed twice");
  }
  if (error && !fake_device_of(base->context)->is_removed) {
    return fake_end(error);
  }
  *place = qp->next;
  fake_cq_forget((struct fake_cq *)base->send_cq, qp);
  ((struct fake_cq *)base->send_cq)->users--;
  ((struct fake_pd *)base->pd)->users--;
  fake.counts.qps--;
  free_qp(qp);
  return fake_end(0);
}

struct fake_qp *fake_qp_find(uint32_t number) {
  struct fake_qp *qp = fake.qps;
  while (qp && qp->base.qp_num != number) {
    qp = qp->next;
  }
  return qp;
}

/* ---- completions ---- */

/* One, or none where the request did not ask for it and nothing is wrong. */
static void complete(struct fake_qp *qp, bool is_send, const struct ibv_wc *wc) {
  struct fake_queue *queue = is_send ? &qp->sends : &qp->receives;
  const struct fake_request *request = &queue->ring[queue->done % queue->capacity];
  struct fake_completion completion = {
    .wc = *wc, .qp = qp, .is_send = is_send, .sequence = queue->done++
  };
  if (wc->status != IBV_WC_SUCCESS) {
    memset(&completion.wc, NONSENSE, sizeof(completion.wc));
    completion.wc.status = wc->status;
  } else if (is_send && !(request->flags & IBV_SEND_SIGNALED)) {
    return;
  }
  completion.wc.wr_id = request->wr_id;
  completion.wc.qp_num = qp->base.qp_num;
  fake_cq_push((struct fake_cq *)qp->base.send_cq, &completion);
}

static void flush(struct fake_qp *qp, bool is_send) {
  const struct fake_queue *queue = is_send ? &qp->sends : &qp->receives;
  while (queue->done < queue->posted) {
    complete(qp, is_send, &(struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR });
  }
}

void fake_qp_break(struct fake_qp *qp) {
  qp->state = IBV_QPS_ERR;
  flush(qp, true);
  flush(qp, false);
}

/* ---- states ---- */

int fake_qp_modify(struct fake_qp *qp, const struct ibv_qp_attr *attributes, int mask) {
  enum ibv_qp_state from = qp->state, to = attributes->qp_state;
  /* Up, one after the other; INIT again; ERR from anywhere. */
  bool is_move = to == IBV_QPS_ERR || (from < IBV_QPS_RTS && to == from + 1) ||
                 (to == from && to == IBV_QPS_INIT);
  if (!(mask & IBV_QP_STATE) || !is_move || mask >= IBV_QP_DEST_QPN << 1) {
    return EINVAL;
  }
  if (mask & IBV_QP_ACCESS_FLAGS) {
    qp->access = attributes->qp_access_flags;
  }
  if (mask & IBV_QP_DEST_QPN) {
    qp->remote = attributes->dest_qp_num;
  }
  qp->state = to;
  if (to == IBV_QPS_ERR) {
    fake_qp_break(qp);
  }
  return 0;
}

int fake_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attributes, int mask) {
  struct fake_qp *qp = (struct fake_qp *)base;
  int error = fake_begin_on(base->context, FAKE_MODIFY_QP);
  if (attributes->qp_state == IBV_QPS_ERR) {
    int stop_error = fake_call_fault(FAKE_STOP_QP);
    error = error ? error : stop_error;
    qp->is_stop_refused |= error != 0;
  }
  /* iWARP's are connected by librdmacm, in the kernel: what it says for RTR changes nothing. */
  bool is_nothing = fake_is_iwarp(base->context) && attributes->qp_state == IBV_QPS_RTR;
  error = error || is_nothing ? error : fake_qp_modify(qp, attributes, mask);
  fake_work_all(); /* others may have waited for this one */
  return fake_end(error);
}

/* ---- requests ---- */

/* Inline bytes are the sender's own again when post_send returns. */
static int take_inline(struct fake_request *request, uint32_t most) {
  uint32_t bytes = 0;
  for (int i = 0; i < request->sge_count; i++) {
    const struct ibv_sge *sge = &request->sges[i];
    if (bytes + sge->length > most) {
      return ENOMEM;
    }
    memcpy(request->inline_data + bytes, (const void *)(uintptr_t)sge->addr, sge->length);
    bytes += sge->length;
  }
  request->sge_count = 1;
  request->sges[0] = (struct ibv_sge){ (uintptr_t)request->inline_data, bytes, 0 };
  return 0;
}

/* NULL: there is no room. */
static struct fake_request *add(struct fake_queue *queue, const struct ibv_sge *sges, int count) {
  if (queue->posted - queue->polled >= queue->capacity || count > FAKE_SGES_MAX) {
    return NULL;
  }
  struct fake_request *request = &queue->ring[queue->posted % queue->capacity];
  *request = (struct fake_request){ .sge_count = count };
  memcpy(request->sges, sges, sizeof(*sges) * (size_t)count);
  return request;
}

static int add_send(struct fake_qp *qp, const struct ibv_send_wr *wr) {
  if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) {
    return EINVAL;
  }
  struct fake_request *request = add(&qp->sends, wr->sg_list, wr->num_sge);
  if (!request) {
    return ENOMEM;
  }
  request->wr_id = wr->wr_id;
  request->opcode = wr->opcode;
  request->flags = wr->send_flags;
  request->imm = wr->imm_data;
  request->remote_address = wr->wr.rdma.remote_addr;
  request->rkey = wr->wr.rdma.rkey;
  int error = wr->send_flags & IBV_SEND_INLINE ? take_inline(request, qp->max_inline) : 0;
  qp->sends.posted += error == 0;
  return error;
}

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct fake_qp *qp = (struct fake_qp *)base;
  int error = 0;
  for (; wr && !error; wr = wr->next) {
    error = fake_begin(FAKE_POST_SEND);
    error = error ? error : add_send(qp, wr);
    *bad = error ? wr : *bad;
    if (qp->state == IBV_QPS_ERR) {
      flush(qp, true);
    }
    fake_end(error);
  }
  pthread_mutex_lock(&fake.lock);
  fake_work_all();
  return fake_end(error);
}

/* One at a time. */
int fake_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct fake_qp *qp = (struct fake_qp *)base;
  int error = fake_begin(FAKE_POST_RECV);
  struct fake_request *request = error ? NULL : add(&qp->receives, wr->sg_list, wr->num_sge);
  if (request) {
    request->wr_id = wr->wr_id;
    qp->receives.posted++;
  }
  error = error ? error : request ? 0 : ENOMEM;
  *bad = wr;
  if (qp->state == IBV_QPS_ERR) {
    flush(qp, false);
  }
  fake_work_all();
  return fake_end(error);
}

/* ---- what a card does ---- */

/* The queue pair that hears what this one sends, or NULL: then it sends in vain. */
static struct fake_qp *find_remote(const struct fake_qp *qp) {
  struct fake_qp *remote = fake_qp_find(qp->remote);
  if (!remote || (remote->state != IBV_QPS_RTR && remote->state != IBV_QPS_RTS) ||
      remote->remote != qp->base.qp_num) {
    return NULL;
  }
  bool is_way_open =
      fake_device_of(qp->base.context)->is_up && fake_device_of(remote->base.context)->is_up;
  return is_way_open ? remote : NULL;
}

static bool is_write(const struct fake_request *request) {
  return request->opcode != IBV_WR_SEND;
}

static bool needs_receive(const struct fake_request *request) {
  return request->opcode != IBV_WR_RDMA_WRITE;
}

static uint32_t bytes_of(const struct fake_request *request) {
  uint32_t bytes = 0;
  for (int i = 0; i < request->sge_count; i++) {
    bytes += request->sges[i].length;
  }
  return bytes;
}

/* Upwards, as a card writes. False: a key does not cover its piece. to: NULL only checks. */
static bool gather(const struct fake_qp *qp, const struct fake_request *request, char *to) {
  bool is_inline = (request->flags & IBV_SEND_INLINE) != 0;
  for (int i = 0; i < request->sge_count; i++) {
    const struct ibv_sge *sge = &request->sges[i];
    if (!is_inline && !fake_mr_find(qp->base.pd, sge->lkey, sge->addr, sge->length, 0)) {
      return false;
    }
    if (to) {
      memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
      to += sge->length;
    }
  }
  return true;
}

static char *find_written(const struct fake_qp *remote, const struct fake_request *request,
                          uint64_t bytes) {
  return remote->access & IBV_ACCESS_REMOTE_WRITE
             ? fake_mr_find(remote->base.pd, request->rkey, request->remote_address, bytes,
                            IBV_ACCESS_REMOTE_WRITE)
             : NULL;
}

static enum ibv_wc_status fail_receive(struct fake_qp *remote, enum ibv_wc_status status,
                                       enum ibv_wc_status told) {
  complete(remote, false, &(struct ibv_wc){ .status = status });
  fake_qp_break(remote);
  return told;
}

/* Uses up a receive request of the remote. What the sender is told. */
static enum ibv_wc_status receive(struct fake_qp *qp, struct fake_qp *remote,
                                  const struct fake_request *request, uint32_t bytes) {
  const struct fake_queue *queue = &remote->receives;
  const struct ibv_sge *to = &queue->ring[queue->done % queue->capacity].sges[0];
  struct fake_work_fault fault;
  if (fake_work_fault(FAKE_RECEIVE, &fault)) {
    return fail_receive(remote, fault.status, IBV_WC_REM_OP_ERR);
  }
  if (!is_write(request)) {
    char *at =
        fake_mr_find(remote->base.pd, to->lkey, to->addr, to->length, IBV_ACCESS_LOCAL_WRITE);
    if (!at) {
      return fail_receive(remote, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
    }
    if (to->length < bytes) {
      return fail_receive(remote, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    }
    gather(qp, request, at);
  }
  struct ibv_wc wc = {
    .opcode = is_write(request) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
    .byte_len = bytes,
    .imm_data = request->imm,
  };
  complete(remote, false, &wc);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status carry_out(struct fake_qp *qp, struct fake_qp *remote,
                                    const struct fake_request *request) {
  uint32_t bytes = bytes_of(request);
  if (!gather(qp, request, NULL)) {
    return IBV_WC_LOC_PROT_ERR;
  }
  if (is_write(request)) {
    char *to = find_written(remote, request, bytes);
    if (!to) {
      fake.counts.refused++;
      fake_qp_break(remote);
      return IBV_WC_REM_ACCESS_ERR;
    }
    gather(qp, request, to);
    remote->written = *request;
    remote->written_bytes = bytes;
  }
  enum ibv_wc_status status =
      needs_receive(request) ? receive(qp, remote, request, bytes) : IBV_WC_SUCCESS;
  if (status == IBV_WC_SUCCESS) {
    *(is_write(request) ? &fake.counts.writes : &fake.counts.sends) += 1;
    *(is_write(request) ? &fake.counts.written_bytes : &fake.counts.sent_bytes) += bytes;
  }
  return status;
}

/* Does the next send request. False if there is none or it must wait. */
static bool work_one(struct fake_qp *qp) {
  struct fake_queue *queue = &qp->sends;
  if (qp->state != IBV_QPS_RTS || queue->done == queue->posted) {
    return false;
  }
  const struct fake_request *request = &queue->ring[queue->done % queue->capacity];
  struct fake_qp *remote = find_remote(qp);
  if (remote && needs_receive(request) && remote->receives.done == remote->receives.posted) {
    fake.counts.waits++;
    return false;
  }
  struct fake_work_fault fault = { 0 };
  bool is_hit = fake_work_fault(FAKE_SEND, &fault);
  is_hit = (is_write(request) && fake_work_fault(FAKE_WRITE, &fault)) || is_hit;
  enum ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
  if (remote && (!is_hit || fault.is_delivered)) {
    status = carry_out(qp, remote, request);
  }
  status = is_hit ? fault.status : status;
  complete(qp, true, &(struct ibv_wc){ .status = status });
  if (status != IBV_WC_SUCCESS) {
    fake_qp_break(qp);
  }
  return true;
}

unsigned fake_work_some(unsigned most) {
  unsigned done = 0;
  for (bool has_moved = true; has_moved && done < most;) {
    has_moved = false;
    for (struct fake_qp *qp = fake.qps; qp && done < most; qp = qp->next) {
      bool is_done = work_one(qp);
      done += is_done;
      has_moved |= is_done;
    }
  }
  return done;
}

void fake_work_all(void) {
  if (fake.has_thread) {
    pthread_cond_signal(&fake.has_work);
  } else {
    fake_work_some(UINT32_MAX);
  }
}

unsigned fake_verbs_write_late(void) {
  unsigned written = 0;
  pthread_mutex_lock(&fake.lock);
  for (const struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    bool takes_writes = qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS;
    char *to = qp->is_stop_refused && takes_writes && qp->written_bytes
                   ? find_written(qp, &qp->written, qp->written_bytes)
                   : NULL;
    if (to) {
      memset(to, LATE, qp->written_bytes);
      written++;
    }
  }
  pthread_mutex_unlock(&fake.lock);
  return written;
}
