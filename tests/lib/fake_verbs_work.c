/* SPDX-License-Identifier: Apache-2.0 */
/* What a card does with a request: finds the other queue pair, checks, moves the bytes, completes.
 */
#include <string.h>

#include "tests/lib/fake_verbs_state.h"

/* What the specification leaves undefined in a completion with an error. */
enum { NONSENSE = 0x5a };
/* What a late write brings. */
enum { LATE = 0xee };

enum outcome { OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_WAIT };

/* Stretches of memory, in order. */
struct stretches {
  unsigned count;
  struct {
    char *at;
    size_t bytes;
  } list[FAKE_SGES_MAX];
  size_t bytes;
};

void fake_work_complete(struct fake_qp *qp, bool is_send, const struct fake_request *request,
                        const struct ibv_wc *wc) {
  struct fake_queue *queue = is_send ? &qp->sends : &qp->receives;
  struct fake_completion completion = {
    .wc = *wc,
    .qp = qp,
    .is_send = is_send,
    .sequence = queue->done++,
  };
  bool is_wanted = !is_send || (request->flags & IBV_SEND_SIGNALED);
  if (wc->status == IBV_WC_SUCCESS && !is_wanted) {
    return;
  }
  if (wc->status != IBV_WC_SUCCESS) {
    memset(&completion.wc, NONSENSE, sizeof(completion.wc));
    completion.wc.wr_id = wc->wr_id;
    completion.wc.status = wc->status;
    completion.wc.vendor_err = 0x80u + (uint32_t)wc->status;
  }
  completion.wc.qp_num = qp->base.qp_num;
  fake_cq_push((struct fake_cq *)(is_send ? qp->base.send_cq : qp->base.recv_cq), &completion);
}

/* ---- finding the other end ---- */

/* The queue pair that hears what this one sends, or NULL: then it sends in vain. */
static struct fake_qp *find_remote(const struct fake_qp *qp) {
  const struct fake_device *here = fake_context_of(qp->base.context)->device;
  struct fake_qp *remote = fake_qp_find(qp->attributes.dest_qp_num);
  if (!remote || (remote->state != IBV_QPS_RTR && remote->state != IBV_QPS_RTS)) {
    return NULL;
  }
  const struct fake_device *there = fake_context_of(remote->base.context)->device;
  bool is_way_open = here->is_up && there->is_up && !fake.is_cut;
  bool do_match = remote->attributes.dest_qp_num == qp->base.qp_num &&
                  remote->attributes.rq_psn == qp->attributes.sq_psn;
  return is_way_open && do_match ? remote : NULL;
}

/* ---- memory ---- */

static bool find_local(const struct fake_qp *qp, struct fake_request *request, int access,
                       struct stretches *out) {
  *out = (struct stretches){ 0 };
  if (request->inline_bytes) {
    out->count = 1;
    out->list[0].at = request->inline_data;
    out->list[0].bytes = out->bytes = request->inline_bytes;
  }
  for (int i = 0; i < request->sge_count; i++) {
    const struct ibv_sge *sge = &request->sges[i];
    if (sge->length == 0) {
      continue;
    }
    struct fake_mr *mr = fake_mr_find(qp->base.pd, sge->lkey, sge->addr, sge->length, access);
    if (!mr) {
      return false;
    }
    out->list[out->count].at = mr->memory + (sge->addr - mr->iova);
    out->list[out->count++].bytes = sge->length;
    out->bytes += sge->length;
  }
  return true;
}

/* Where the write goes; false: it may not. */
static bool find_remote_memory(const struct fake_qp *remote, const struct fake_request *request,
                               size_t bytes, char **to) {
  bool is_allowed = (remote->attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0;
  struct fake_mr *mr = is_allowed
                           ? fake_mr_find(remote->base.pd, request->rkey, request->remote_address,
                                          bytes, IBV_ACCESS_REMOTE_WRITE)
                           : NULL;
  *to = mr ? mr->memory + (request->remote_address - mr->iova) : NULL;
  return mr != NULL;
}

/* Upwards, as a card writes. */
static void move(char *to, const struct stretches *from) {
  for (unsigned i = 0; i < from->count; i++) {
    memcpy(to, from->list[i].at, from->list[i].bytes);
    to += from->list[i].bytes;
  }
}

/* ---- receiving ---- */

static void fail_receive(struct fake_qp *remote, const struct fake_request *receive,
                         enum ibv_wc_status status) {
  struct ibv_wc wc = { .wr_id = receive->wr_id, .status = status };
  fake_work_complete(remote, false, receive, &wc);
  fake_qp_break(remote);
}

/* Uses up a receive request of the remote. What the sender is told. */
static enum ibv_wc_status receive(struct fake_qp *remote, const struct fake_request *request,
                                  const struct stretches *from) {
  struct fake_queue *queue = &remote->receives;
  struct fake_request *taken = &queue->ring[queue->done % queue->capacity];
  bool is_write = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  struct fake_work_fault fault;
  struct stretches to;
  if (fake_work_fault(fake.receives, &fault)) {
    fail_receive(remote, taken, fault.status);
    return IBV_WC_REM_OP_ERR;
  }
  if (!is_write) {
    if (!find_local(remote, taken, IBV_ACCESS_LOCAL_WRITE, &to)) {
      fail_receive(remote, taken, IBV_WC_LOC_PROT_ERR);
      return IBV_WC_REM_OP_ERR;
    }
    if (to.bytes < from->bytes) {
      fail_receive(remote, taken, IBV_WC_LOC_LEN_ERR);
      return IBV_WC_REM_INV_REQ_ERR;
    }
    move(to.list[0].at, from);
  }
  struct ibv_wc wc = {
    .wr_id = taken->wr_id,
    .status = IBV_WC_SUCCESS,
    .opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
    .byte_len = (uint32_t)from->bytes,
    .imm_data = is_write ? request->imm : 0,
    .wc_flags = is_write ? IBV_WC_WITH_IMM : 0,
    .src_qp = remote->attributes.dest_qp_num,
  };
  fake_work_complete(remote, false, taken, &wc);
  return IBV_WC_SUCCESS;
}

/* ---- sending ---- */

static enum ibv_wc_status refuse_access(struct fake_qp *remote) {
  fake.counts.refused++;
  fake_context_push(fake_context_of(remote->base.context), IBV_EVENT_QP_ACCESS_ERR, &remote->base,
                    NULL);
  fake_qp_break(remote);
  return IBV_WC_REM_ACCESS_ERR;
}

static bool is_write(const struct fake_request *request) {
  return request->opcode == IBV_WR_RDMA_WRITE || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool needs_receive(const struct fake_request *request) {
  return request->opcode != IBV_WR_RDMA_WRITE;
}

static void count(const struct fake_request *request, size_t bytes) {
  fake.counts.writes += is_write(request);
  fake.counts.written_bytes += is_write(request) ? bytes : 0;
  fake.counts.sends += !is_write(request);
  fake.counts.sent_bytes += is_write(request) ? 0 : bytes;
}

static void note_write(struct fake_qp *remote, const struct fake_request *request, size_t bytes) {
  remote->written_address = request->remote_address;
  remote->written_bytes = bytes;
  remote->written_key = request->rkey;
}

static enum ibv_wc_status carry_out(struct fake_qp *qp, struct fake_qp *remote,
                                    struct fake_request *request) {
  struct stretches here;
  char *there;
  if (!find_local(qp, request, 0, &here)) {
    return IBV_WC_LOC_PROT_ERR;
  }
  if (is_write(request)) {
    if (!find_remote_memory(remote, request, here.bytes, &there)) {
      return refuse_access(remote);
    }
    move(there, &here);
    note_write(remote, request, here.bytes);
  }
  enum ibv_wc_status status =
      needs_receive(request) ? receive(remote, request, &here) : IBV_WC_SUCCESS;
  if (status == IBV_WC_SUCCESS) {
    count(request, here.bytes);
  }
  return status;
}

static enum outcome do_request(struct fake_qp *qp, struct fake_request *request,
                               enum ibv_wc_status *status) {
  struct fake_qp *remote = find_remote(qp);
  if (remote && needs_receive(request) && remote->receives.done == remote->receives.posted) {
    fake.counts.waits++;
    return OUTCOME_WAIT;
  }
  struct fake_work_fault fault;
  bool is_hit = fake_work_fault(fake.sends, &fault);
  is_hit = (is_write(request) && fake_work_fault(fake.writes, &fault)) || is_hit;
  *status = IBV_WC_RETRY_EXC_ERR;
  if (remote && (!is_hit || fault.is_delivered)) {
    *status = carry_out(qp, remote, request);
  }
  if (is_hit) {
    *status = fault.status;
  }
  return *status == IBV_WC_SUCCESS ? OUTCOME_DONE : OUTCOME_FAILED;
}

static bool write_late(const struct fake_qp *qp) {
  bool takes_writes = qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS;
  if (!qp->is_stop_refused || !takes_writes || qp->written_bytes == 0 ||
      !(qp->attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
    return false;
  }
  struct fake_mr *mr = fake_mr_find(qp->base.pd, qp->written_key, qp->written_address,
                                    qp->written_bytes, IBV_ACCESS_REMOTE_WRITE);
  if (mr) {
    memset(mr->memory + (qp->written_address - mr->iova), LATE, qp->written_bytes);
  }
  return mr != NULL;
}

unsigned fake_verbs_write_late(void) {
  unsigned written = 0;
  pthread_mutex_lock(&fake.lock);
  for (const struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    written += write_late(qp);
  }
  pthread_mutex_unlock(&fake.lock);
  return written;
}

bool fake_work_one(struct fake_qp *qp) {
  struct fake_queue *queue = &qp->sends;
  if (qp->state != IBV_QPS_RTS || queue->done == queue->posted) {
    return false;
  }
  struct fake_request *request = &queue->ring[queue->done % queue->capacity];
  enum ibv_wc_status status;
  enum outcome outcome = do_request(qp, request, &status);
  if (outcome == OUTCOME_WAIT) {
    return false;
  }
  struct ibv_wc wc = {
    .wr_id = request->wr_id,
    .status = status,
    .opcode = is_write(request) ? IBV_WC_RDMA_WRITE : IBV_WC_SEND,
  };
  fake_work_complete(qp, true, request, &wc);
  if (outcome == OUTCOME_FAILED) {
    fake_qp_break(qp);
  }
  return true;
}

void fake_work_all(void) {
  if (fake.has_thread) {
    pthread_cond_signal(&fake.has_work);
    return;
  }
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
      while (fake_work_one(qp)) {
        has_moved = true;
      }
    }
  }
}
