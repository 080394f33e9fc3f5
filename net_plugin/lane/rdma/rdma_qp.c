/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_qp.h. */
#include "net_plugin/lane/rdma/rdma_qp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"

static size_t slots_bytes(const struct rdma_qp *qp) {
  return RDMA_SLOTS * ((size_t)qp->send_bytes + qp->receive_bytes);
}

/* ---- made ---- */

static const char *make_queues(struct rdma_qp *qp) {
  const struct verbs_api *api = qp->api;
  struct ibv_context *context = qp->device->bound->verbs;
  descriptor_begin();
  qp->channel = api->create_comp_channel(context);
  descriptor_mark(qp->channel ? qp->channel->fd : -1);
  descriptor_end();
  if (!qp->channel || !verbs_make_nonblocking(qp->channel->fd)) {
    return "create a completion channel";
  }
  qp->cq = api->create_cq(context, RDMA_SEND_DEPTH + RDMA_SLOTS, NULL, qp->channel, 0);
  if (!qp->cq) {
    return "create a completion queue";
  }
  /* No driver reports its limit. */
  static const uint32_t inline_bytes[] = { RDMA_INLINE_BYTES, RDMA_INLINE_LEAST_BYTES, 0 };
  for (size_t i = 0; i < sizeof inline_bytes / sizeof *inline_bytes && !qp->qp; i++) {
    struct ibv_qp_init_attr wish = {
      .send_cq = qp->cq,
      .recv_cq = qp->cq,
      .qp_type = IBV_QPT_RC,
      .cap = { .max_send_wr = RDMA_SEND_DEPTH,
               .max_recv_wr = RDMA_SLOTS,
               .max_send_sge = 2,
               .max_recv_sge = 1,
               .max_inline_data = inline_bytes[i] },
    };
    qp->qp = api->create_qp(qp->device->pd, &wish);
    qp->max_inline = wish.cap.max_inline_data;
  }
  return qp->qp ? NULL : "create a queue pair";
}

static const char *make_slots(struct rdma_qp *qp) {
  void *memory =
      mmap(NULL, slots_bytes(qp), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return "get memory";
  }
  qp->slots = memory;
  qp->slots_mr =
      qp->api->reg_mr(qp->device->pd, qp->slots, slots_bytes(qp), IBV_ACCESS_LOCAL_WRITE);
  return qp->slots_mr ? NULL : "register memory (is `ulimit -l` large enough?)";
}

/* Receives must be there before the peer can send. */
static const char *begin(struct rdma_qp *qp) {
  struct ibv_qp_attr attributes = {
    .qp_state = IBV_QPS_INIT,
    .port_num = qp->device->port,
    .qp_access_flags = rdma_qp_access(qp),
  };
  int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  mask |= qp->device->transport == RDMA_IWARP ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  errno = qp->api->modify_qp(qp->qp, &attributes, mask);
  if (errno) {
    return "initialise a queue pair";
  }
  for (unsigned slot = 0; slot < RDMA_SLOTS; slot++) {
    errno = -rdma_qp_post_receive(qp, slot);
    if (errno) {
      return "post receives";
    }
  }
  errno = -rdma_qp_arm(qp);
  return errno ? "ask for events" : NULL;
}

int rdma_qp_make(struct rdma_qp *qp, char why[RDMA_WHY_MAX]) {
  const char *failed = make_queues(qp);
  failed = failed ? failed : make_slots(qp);
  failed = failed ? failed : begin(qp);
  if (failed) {
    snprintf(why, RDMA_WHY_MAX, "%s: cannot %s: %s", qp->device->name, failed, strerror(errno));
  }
  return failed ? -ENODEV : 0;
}

/* ---- stopped ---- */

/* 0 or errno. */
static int destroy_queue_pair(struct rdma_qp *qp) {
  int error = qp->qp ? qp->api->destroy_qp(qp->qp) : 0;
  qp->qp = error ? qp->qp : NULL;
  return error;
}

static int destroy_channel(const struct rdma_qp *qp) {
  descriptor_begin();
  descriptor_unmark(qp->channel->fd);
  int error = qp->api->destroy_comp_channel(qp->channel);
  if (error) {
    descriptor_mark(qp->channel->fd);
  }
  descriptor_end();
  return error;
}

/* The device neither stops nor destroys it, so it is not to be trusted with others either. */
static int withdraw_memory(const struct rdma_qp *qp) {
  rdma_device_lose(qp->device, "it cannot destroy a queue pair");
  if (qp->is_sender) {
    return 0; /* no peer can write through it */
  }
  int error = rdma_memory_revoke(qp->device->index);
  if (error) {
    LOG_WARN("%s, the RDMA device of %s, may still write where a receive was (ibv_dereg_mr: %s): "
             "the connection ends. Look at the kernel's log, and reload the driver, or leave the "
             "device out (NCCL_IB_HCA)",
             qp->device->name, qp->device->nic.name, strerror(error));
  }
  return error ? -ENOTRECOVERABLE : 0;
}

/* 0 or errno. */
static int move_to_error(const struct rdma_qp *qp) {
  struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_ERR };
  return qp->qp ? qp->api->modify_qp(qp->qp, &attributes, IBV_QP_STATE) : 0;
}

/* Tried in this order: modify to ERR, the normal case; destroy at once, when the device has been
 * removed, but while the worker connects it, which fails then, only the worker may do that; give up
 * the device and every registration on it that a peer may write to, so that other connections lose
 * their lanes on it, too. One that sends needs the first two only. */
int endpoint_stop(struct endpoint *endpoint) {
  struct rdma_qp *qp = rdma_qp_of(endpoint);
  int destroy_error = 0, error = qp ? move_to_error(qp) : 0;
  if (!error) {
    return 0;
  }
  const struct rdma_device *device = qp->device;
  bool may_destroy = pthread_mutex_trylock(&qp->in_use) == 0;
  if (may_destroy) {
    destroy_error = destroy_queue_pair(qp);
    pthread_mutex_unlock(&qp->in_use);
  }
  if (!destroy_error) { /* destroyed: all that a device can do that is gone */
    LOG_AT(atomic_load(&device->is_lost) ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO,
           "%s: ibv_modify_qp does not stop a queue pair: %s", device->name, strerror(error));
    return may_destroy ? 0 : withdraw_memory(qp);
  }
  LOG_WARN("%s, the RDMA device of %s, neither stops (ibv_modify_qp: %s) nor destroys "
           "(ibv_destroy_qp: %s) a queue pair: it is used no more. Look at the kernel's log",
           device->name, device->nic.name, strerror(error), strerror(destroy_error));
  return withdraw_memory(qp);
}

/* What is left, in the order in which one needs the other. NULL, or what the device refuses. */
static const char *give_back(struct rdma_qp *qp, int *error) {
  const struct verbs_api *api = qp->api;
  if ((*error = destroy_queue_pair(qp)) != 0) {
    return "ibv_destroy_qp";
  }
  rdmacm_destroy_id(api, qp->listener);
  rdmacm_destroy_id(api, qp->id);
  qp->listener = qp->id = NULL;
  if (qp->cq && (*error = api->destroy_cq(qp->cq)) != 0) {
    return "ibv_destroy_cq";
  }
  qp->cq = NULL;
  if (qp->channel && (*error = destroy_channel(qp)) != 0) {
    return "ibv_destroy_comp_channel";
  }
  qp->channel = NULL;
  if (qp->slots_mr && (*error = api->dereg_mr(qp->slots_mr)) != 0) {
    return "ibv_dereg_mr";
  }
  qp->slots_mr = NULL;
  return NULL;
}

/* What the device keeps may still be written, so that memory is not reused, and the device stays
 * open. */
static void destroy(struct rdma_job *job) {
  struct rdma_qp *qp = LIST_ENTRY(job, struct rdma_qp, job);
  int error = 0;
  const char *refused = give_back(qp, &error);
  for (unsigned tries = 1; refused && tries < RDMA_DESTROY_TRIES; tries++) {
    refused = give_back(qp, &error);
  }
  if (refused) {
    LOG_WARN_EVERY(RDMA_WARN_INTERVAL_NS,
                   "%s does not give up a queue pair (%s: %s): its %zu bytes are kept. Look at the "
                   "kernel's log, and reload its driver",
                   qp->device->name, refused, strerror(error), slots_bytes(qp));
    rdma_worker_keep(&qp->device->queue, job);
    return;
  }
  if (qp->slots) {
    munmap(qp->slots, slots_bytes(qp));
  }
  rdma_device_release(qp->device);
  descriptor_close(qp->news_fd);
  pthread_mutex_destroy(&qp->in_use);
  hash_wipe(&qp->tokens, sizeof(qp->tokens));
  free(qp);
}

void endpoint_free(struct endpoint *endpoint) {
  struct rdma_qp *qp = rdma_qp_of(endpoint);
  if (qp) {
    rdma_worker_take_back(&qp->job); /* it was not made yet */
    qp->job.run = destroy;
    rdma_worker_submit(&qp->device->queue, &qp->job);
  }
}

/* ---- work ---- */

int rdma_qp_post_receive(struct rdma_qp *qp, unsigned slot) {
  struct ibv_sge piece = { .addr = (uintptr_t)rdma_qp_receive_slot(qp, slot),
                           .length = qp->receive_bytes,
                           .lkey = qp->slots_mr->lkey };
  struct ibv_recv_wr request = { .wr_id = slot, .sg_list = &piece, .num_sge = 1 };
  struct ibv_recv_wr *bad;
  return -ibv_post_recv(qp->qp, &request, &bad);
}

int rdma_qp_arm(struct rdma_qp *qp) {
  return -ibv_req_notify_cq(qp->cq, 0);
}

bool rdma_qp_take_event(struct rdma_qp *qp) {
  struct ibv_cq *cq;
  void *context;
  if (qp->api->get_cq_event(qp->channel, &cq, &context) != 0) {
    return false;
  }
  qp->api->ack_cq_events(cq, 1);
  return true;
}

int rdma_qp_failed(const struct rdma_qp *qp, const struct ibv_wc *done, bool is_closing) {
  bool is_late = done->status == IBV_WC_WR_FLUSH_ERR; /* something else broke the queue pair */
  LOG_AT(is_late || is_closing ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO,
         "%s: queue pair %u failed: %s (vendor error %#x)", qp->device->name, qp->qp->qp_num,
         qp->api->wc_status_str(done->status), done->vendor_err);
  switch (done->status) {
  case IBV_WC_RETRY_EXC_ERR:
  case IBV_WC_RESP_TIMEOUT_ERR:
    return -ETIMEDOUT;
  case IBV_WC_REM_ACCESS_ERR:
  case IBV_WC_REM_INV_REQ_ERR:
  case IBV_WC_REM_OP_ERR:
    return -EREMOTEIO;
  case IBV_WC_WR_FLUSH_ERR:
    return -ECONNRESET;
  default:
    return -EIO;
  }
}
