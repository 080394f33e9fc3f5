/* SPDX-License-Identifier: Apache-2.0 */
/* librdmacm of the fake provider: how identifiers are connected, and their queue pairs. */
#include <errno.h>
#include <string.h>

#include "tests/lib/fake_verbs_state.h"

/* In what is said about RoCE, the kernel's own; fake_qp_modify refuses them. */
enum { KERNEL_BITS = 0xE00000 };

/* ---- queue pairs ---- */

static bool is_iwarp(const struct fake_cm_id *id) {
  return id->device->hca->is_iwarp;
}

static int attributes_of(struct fake_cm_id *id, struct ibv_qp_attr *out) {
  enum ibv_qp_state state = out->qp_state;
  *out = (struct ibv_qp_attr){ .qp_state = state, .port_num = 1, .qp_access_flags = 0 };
  if (!id->peer || !fake_cm_find_device(&id->at) || !fake_cm_find_device(&id->target)) {
    return -1;
  }
  out->dest_qp_num = id->peer->number;
  out->rq_psn = id->peer->psn;
  out->sq_psn = id->psn;
  return 0;
}

static int mask_of(enum ibv_qp_state state) {
  switch (state) {
  case IBV_QPS_INIT:
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  case IBV_QPS_RTR:
    return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  default:
    return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
  }
}

static int init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attributes, int *mask) {
  struct fake_cm_id *id = fake_cm_id_of(base);
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_ATTRIBUTES);
  error = error ? error : attributes_of(id, attributes) ? ENOTCONN : 0;
  if (!error && is_iwarp(id)) {
    *mask = attributes->qp_state == IBV_QPS_RTS ? 0 : IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  } else if (!error) {
    *mask = mask_of(attributes->qp_state);
    *mask |= attributes->qp_state == IBV_QPS_RTR ? KERNEL_BITS : 0;
  }
  return fake_cm_done(error);
}

/* As iWARP's drivers, from within. */
static int move_to_ready(struct fake_cm_id *id) {
  struct fake_qp *qp = fake_qp_find(id->number);
  for (enum ibv_qp_state state = IBV_QPS_RTR; state <= IBV_QPS_RTS; state++) {
    struct ibv_qp_attr attributes = { .qp_state = state };
    if (!qp || attributes_of(id, &attributes) ||
        fake_qp_modify(qp, &attributes, mask_of(state)) != 0) {
      return EINVAL;
    }
  }
  return 0;
}

static bool has_state(uint32_t number, enum ibv_qp_state state) {
  const struct fake_qp *qp = fake_qp_find(number);
  return qp && qp->state == state;
}

/* ---- connecting ---- */

static struct fake_cm_id *find_listener(const struct fake_cm_id *from) {
  for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
    if (id->is_listening && !memcmp(&id->at, &from->target, sizeof(id->at))) {
      return id;
    }
  }
  return NULL;
}

static int ask(struct fake_cm_id *id, struct fake_cm_id *listener,
               const struct rdma_conn_param *told) {
  struct rdma_conn_param shown = *told;
  struct fake_cm_id *child = fake_cm_new_id(listener->base.channel);
  if (!child) {
    return ENOMEM;
  }
  child->at = listener->at;
  child->target = id->at;
  fake_cm_set_device(child);
  child->peer = id;
  id->peer = child;
  shown.qp_num = is_iwarp(child) ? 0 : told->qp_num;
  fake_cm_push(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &shown);
  return 0;
}

static int connect_id(struct rdma_cm_id *base, struct rdma_conn_param *told) {
  struct fake_cm_id *id = fake_cm_id_of(base);
  pthread_mutex_lock(&fake.lock);
  struct fake_cm_id *listener = find_listener(id);
  const struct fake_device *there = fake_cm_find_device(&id->target);
  int error = fake_call_fault(FAKE_CM_CONNECT);
  error = error ? error : has_state(told->qp_num, IBV_QPS_INIT) && id->device ? 0 : EINVAL;
  id->number = told->qp_num;
  if (error) {
    return fake_cm_done(error);
  }
  if (!there || !id->device->is_up || !there->is_up || fake.is_cut) {
    fake_cm_push(id, id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
  } else if (!listener) {
    fake_cm_push(id, id, RDMA_CM_EVENT_REJECTED, FAKE_CM_NOBODY_LISTENS, NULL);
  } else {
    error = ask(id, listener, told);
  }
  return fake_cm_done(error);
}

static int accept_id(struct rdma_cm_id *base, struct rdma_conn_param *told) {
  struct fake_cm_id *id = fake_cm_id_of(base);
  struct rdma_conn_param shown = *told;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_ACCEPT);
  bool is_right = has_state(told->qp_num, is_iwarp(id) ? IBV_QPS_INIT : IBV_QPS_RTS);
  error = error ? error : !id->peer ? ENOTCONN : is_right ? 0 : EINVAL;
  id->number = told->qp_num;
  if (!error && is_iwarp(id)) {
    error = move_to_ready(id);
    error = error ? error : move_to_ready(id->peer);
  }
  if (!error) {
    id->is_accepted = true;
    fake.counts.cm_accepted++;
    shown.qp_num = is_iwarp(id) ? 0 : told->qp_num;
    fake_cm_push(id->peer, id->peer,
                 is_iwarp(id) ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE, 0,
                 &shown);
    if (is_iwarp(id)) {
      fake_cm_push(id, id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
    }
  }
  return fake_cm_done(error);
}

static int establish(struct rdma_cm_id *base) {
  struct fake_cm_id *id = fake_cm_id_of(base);
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_ESTABLISH);
  error = error ? error : has_state(id->number, IBV_QPS_RTS) && !is_iwarp(id) ? 0 : EINVAL;
  if (!error && id->peer) {
    fake_cm_push(id->peer, id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
  }
  return fake_cm_done(error);
}

static int reject(struct rdma_cm_id *base, const void *data, uint8_t bytes) {
  (void)data;
  (void)bytes;
  struct fake_cm_id *id = fake_cm_id_of(base);
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_REJECT);
  if (error) {
    return fake_cm_done(error);
  }
  if (id->peer) {
    fake_cm_push(id->peer, id->peer, RDMA_CM_EVENT_REJECTED, FAKE_CM_BY_CONSUMER, NULL);
    id->peer->peer = NULL;
    id->peer = NULL;
  }
  fake.counts.cm_rejected++;
  return fake_cm_done(0);
}

void fake_cm_fill_connecting(struct rdmacm_api *cm) {
  cm->init_qp_attr = init_qp_attr;
  cm->connect = connect_id;
  cm->establish = establish;
  cm->accept = accept_id;
  cm->reject = reject;
}
