/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_qp: a reliable-connected queue pair with its completion queue and its slots: pieces of
 * registered memory that are sent and received.
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
 * A request with another token is rejected, and the next one is waited for. The queue pair is ours,
 * with our protection domain: librdmacm opens the device a second time and knows only its number.
 *
 * Owns: all of that, what connects it, and a hold on the device.  Threads: one at a time.
 * Blocks: new and stop, as drivers do: a millisecond or so each, so new is called by workers only;
 * stop longer where a device refuses it. What free leaves is destroyed by
 * rdma_worker. What a device does not give back stays, with its memory and the device.
 * Fails: rdma_qp_new returns NULL and says why; others negative errno, after LOG_INFO. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_QP_H
#define NET_PLUGIN_LANE_RDMA_RDMA_QP_H

#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_device.h"
#include "net_plugin/lane/rdma/rdma_facts.h"
#include "net_plugin/lane/rdma/rdma_memory.h"
#include "net_plugin/lane/rdma/rdma_worker.h"

#define RDMA_RNR_RETRY 7 /* for ever */

struct rdma_qp {
  struct rdma_job job; /* of its end */
  struct rdma_device *device;
  struct lane_domain domain;
  uint8_t key_index; /* which key of a target is for the domain: the receiving side's choice */
  const struct verbs_api *api;
  bool is_sender;
  struct rdma_watch watch;
  struct ibv_comp_channel *channel;
  struct ibv_cq *cq;
  struct ibv_qp *qp;
  uint8_t *slots; /* for sending, then for receiving */
  struct ibv_mr *slots_mr;
  uint32_t send_bytes, receive_bytes; /* of a slot */
  uint32_t max_inline;
  bool can_gather; /* two pieces in one send */
  struct rdma_facts peer;
  /* what connects it; NULL: nothing has begun to */
  struct lane_tokens tokens;
  struct rdma_event_channel *events;
  struct rdma_cm_id *listener; /* until the peer's request has come */
  struct rdma_cm_id *id;
  bool is_connected;
};

/* Takes over one hold on the device. is_sender: this side sends the data. */
struct rdma_qp *rdma_qp_new(struct rdma_device *device, bool is_sender, char why[RDMA_WHY_MAX]);
/* What the peer may do to memory, beside filling slots: write, where this side receives. */
static inline unsigned rdma_qp_access(const struct rdma_qp *qp) {
  return qp->is_sender ? 0 : IBV_ACCESS_REMOTE_WRITE;
}
void rdma_qp_facts(const struct rdma_qp *qp, struct rdma_facts *facts);
/* Keeps the peer's facts. -EPROTO: its device is of another kind. */
int rdma_qp_set_peer(struct rdma_qp *qp, const struct rdma_facts *peer);
/* Waits for the peer at this address, at a port of its own. */
int rdma_qp_listen(struct rdma_qp *qp, const struct rdma_facts *peer,
                   const struct sockaddr_storage *at, const struct lane_tokens *tokens,
                   uint16_t *port);
/* Begins to connect from one address to another, whose port is that of rdma_qp_listen. The caller
 * has a deadline. dscp: -1 none. */
int rdma_qp_connect(struct rdma_qp *qp, const struct rdma_facts *peer,
                    const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                    const struct lane_tokens *tokens, int dscp);
/* Goes on with what has happened, whenever the descriptor of `events` is readable. -ENODEV: the
 * device goes; others: it cannot be connected, or is not any more. */
int rdma_qp_advance(struct rdma_qp *qp);
/* After this, the peer writes no memory through it any more. Tried in this order: modify to ERR,
 * the normal case; destroy at once, when the device has been removed; give up the device and every
 * registration on it that a peer may write to, so that other connections lose their lanes on it,
 * too. One that sends needs the first two only. -ENOTRECOVERABLE, after LOG_WARN: none of these
 * could be done, so the peer must not get FENCED for the lane, and the connection ends. */
int rdma_qp_stop(struct rdma_qp *qp);
/* The same while a worker connects it, which fails then: only the worker may destroy it. */
int rdma_qp_stop_moving(struct rdma_qp *qp);
/* Stops it, too, and returns what that does; the rest may be done later. NULL: nothing happens. */
int rdma_qp_free(struct rdma_qp *qp);
/* The same for one that no peer knows, or that is stopped, without asking the driver: a worker does
 * all of it. */
void rdma_qp_abandon(struct rdma_qp *qp);

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

#endif
