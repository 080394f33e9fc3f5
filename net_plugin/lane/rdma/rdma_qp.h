/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_qp: an endpoint (endpoint.h): a reliable-connected queue pair with its completion queue, its
 * slots, pieces of registered memory that are sent and received, and what connects it.
 *
 *   made (receives are posted) --connected--> CONNECTED --stop, or an error--> STOPPED --free-->
 * gone
 *
 * librdmacm connects it, at the port that the handshake carries:
 *
 *   dialling side    address -> route -> request ------> token is right: accept    listening side
 *                    token of the answer is right <----- and the port is closed
 *                    CONNECTED
 *
 * A request with another token is rejected, and the next one is waited for.
 *
 * The device's worker makes, connects and destroys it, and hears librdmacm's events for it; who
 * holds an engine lock learns of it by endpoint_fd.
 *
 *   rdma_endpoint.c  connected
 *   rdma_qp.c        made, stopped, destroyed: endpoint_stop, endpoint_free
 *
 * Owns: all of that, and a use of the device.  Threads: one at a time.
 * Blocks: make, as drivers do: a millisecond or so, so the worker calls it; stop longer where a
 * device refuses it. What a device does not give back stays, with its memory and the
 * device.
 * Fails: negative errno, after LOG_INFO. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_QP_H
#define NET_PLUGIN_LANE_RDMA_RDMA_QP_H

#include <pthread.h>
#include <stdatomic.h>

#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_device.h"
#include "net_plugin/lane/rdma/rdma_memory.h"
#include "net_plugin/lane/rdma/rdma_worker.h"

struct rdma_qp {
  struct endpoint endpoint; /* first */
  struct rdma_device *device;
  const struct verbs_api *api;
  bool is_sender;
  struct rdma_job job; /* makes or destroys it */
  atomic_int result;   /* see endpoint_result; the worker's */
  int news_fd;         /* an eventfd: readable when there is a result */
  /* Held by the worker while it does anything with the queue pair, and by who destroys it. */
  pthread_mutex_t in_use;

  struct ibv_comp_channel *channel;
  struct ibv_cq *cq;
  struct ibv_qp *qp;
  uint8_t *slots; /* for sending, then for receiving */
  struct ibv_mr *slots_mr;
  uint32_t send_bytes, receive_bytes; /* of a slot; the peer's are the same the other way round */
  uint32_t max_inline;
  /* what connects it, the worker's; NULL: nothing has begun to */
  uint8_t peer_key; /* which key of a target is for the peer's domain */
  int dscp;
  struct lane_tokens tokens;
  struct sockaddr_storage here, there;
  struct rdma_cm_id *listener; /* until the peer's request has come */
  struct rdma_cm_id *id;
  atomic_bool is_connected;
};

static inline struct rdma_qp *rdma_qp_of(struct endpoint *endpoint) {
  return (struct rdma_qp *)endpoint;
}

/* All but its connection. 0, or -ENODEV: why. */
int rdma_qp_make(struct rdma_qp *qp, char why[RDMA_WHY_MAX]);
/* What the peer may do to memory, beside filling slots: write, where this side receives. */
static inline unsigned rdma_qp_access(const struct rdma_qp *qp) {
  return qp->is_sender ? 0 : IBV_ACCESS_REMOTE_WRITE;
}
/* librdmacm has events for queue pairs of the device: its worker calls this. */
void rdma_qp_take_events(struct rdma_queue *queue);

static inline uint8_t *rdma_qp_send_slot(const struct rdma_qp *qp, unsigned slot) {
  return qp->slots + slot * qp->send_bytes;
}

static inline uint8_t *rdma_qp_receive_slot(const struct rdma_qp *qp, unsigned slot) {
  return qp->slots + RDMA_SLOTS * qp->send_bytes + slot * qp->receive_bytes;
}

/* The slot can take what arrives. */
int rdma_qp_post_receive(struct rdma_qp *qp, unsigned slot);
/* The next completion makes the channel's descriptor readable, once. */
int rdma_qp_arm(struct rdma_qp *qp);
/* Takes the one that waits, if any. */
bool rdma_qp_take_event(struct rdma_qp *qp);
/* The errno for a completion that is no success, which is logged. */
int rdma_qp_failed(const struct rdma_qp *qp, const struct ibv_wc *done, bool is_closing);

#endif
