/* SPDX-License-Identifier: Apache-2.0 */
/* See endpoint.h and rdma_qp.h: who has a device, and the steps of a queue pair. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/descriptor.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/link/wire.h"

/* ---- devices ---- */

bool endpoint_names_devices(void) {
  struct rdma_settings settings = rdma_device_settings();
  return !settings.is_off && (settings.hcas.count > 0 || settings.hcas.is_excluding);
}

bool endpoint_find(const struct nic *nic, char text[ENDPOINT_TEXT_MAX]) {
  char why[RDMA_WHY_MAX];
  rdma_device_wait(nic, 1);
  struct rdma_device *device = rdma_device_take(nic, why);
  if (!device) {
    snprintf(text, ENDPOINT_TEXT_MAX, "%s", why[0] ? why : "the driver does not answer");
    return false;
  }
  snprintf(text, ENDPOINT_TEXT_MAX, "%s port %u (%s)", device->port.name, device->port.port,
           rdma_transport_name(device->port.transport));
  rdma_device_release(device);
  return true;
}

/* NULL: there is none, which is logged, or the search goes on in the background. */
static struct rdma_device *take(const struct nic *nic) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_device_take(nic, why);
  if (!device && why[0]) {
    rdma_device_log_refusal(nic, why);
  }
  return device;
}

bool endpoint_has_device(const struct nic *nic) {
  struct rdma_device *device = take(nic);
  if (device) {
    rdma_device_release(device);
  }
  return device != NULL;
}

void endpoint_wait(const struct nic *nics, unsigned count, bool is_encrypted) {
  if (!is_encrypted) {
    rdma_device_wait(nics, count);
  }
}

unsigned endpoint_remote_keys(const struct nic *nics, unsigned count, bool is_encrypted) {
  bool is_possible = false;
  if (is_encrypted) {
    rdma_device_log_refusal(nics, "STRATUS_ENCRYPT is on, and RDMA devices do not encrypt");
    return 0;
  }
  for (unsigned i = 0; i < count && !is_possible; i++) {
    is_possible = endpoint_has_device(&nics[i]) || rdma_device_may_come(&nics[i]);
  }
  return is_possible ? WIRE_REMOTE_KEYS : 0;
}

static void offer_of(const struct rdma_device *device, uint8_t key_index,
                     struct lane_offer *offer) {
  offer->bytes[LANE_OFFER_KIND] = (uint8_t)(device->port.transport + 1);
  offer->bytes[LANE_OFFER_KEY] = key_index;
}

bool endpoint_offer(const struct nic *nic, struct lane_offer *offer) {
  struct rdma_device *device = take(nic);
  if (device) {
    offer_of(device, 0, offer);
    rdma_device_release(device);
  }
  return device != NULL;
}

/* ---- steps, by workers ---- */

/* The descriptor first: once the state is DONE, the owner may close it. */
static void run_step(struct rdma_job *job) {
  struct rdma_qp *qp = LIST_ENTRY(job, struct rdma_qp, job);
  int busy = RDMA_BUSY;
  qp->error = qp->step(qp);
  eventfd_write(qp->over_fd, 1);
  if (!atomic_compare_exchange_strong(&qp->state, &busy, RDMA_DONE)) {
    rdma_qp_destroy(qp);
  }
}

static int make(struct rdma_qp *qp) {
  static atomic_flag has_logged = ATOMIC_FLAG_INIT;
  char why[RDMA_WHY_MAX];
  const struct rdma_device *device = qp->device;
  int error = rdma_qp_make(qp, why);
  if (error) {
    rdma_device_log_refusal(&device->nic, why);
  } else if (!atomic_flag_test_and_set(&has_logged)) {
    LOG_INFO("RDMA through %s: device %s, port %u", device->nic.name, device->port.name,
             device->port.port);
  }
  return error;
}

static int step_listen(struct rdma_qp *qp) {
  int error = make(qp);
  return error ? error : rdma_qp_listen(qp);
}

static int step_connect(struct rdma_qp *qp) {
  int error = make(qp);
  return error ? error : rdma_qp_connect(qp);
}

/* -EINPROGRESS: a worker is at it. -EAGAIN: no thread can be had for it. */
static int begin(struct rdma_qp *qp, int (*step)(struct rdma_qp *qp)) {
  qp->step = step;
  atomic_store(&qp->state, RDMA_BUSY);
  if (!rdma_worker_submit(&qp->device->queue, &qp->job) && rdma_worker_take_back(&qp->job)) {
    atomic_store(&qp->state, RDMA_IDLE);
    return -EAGAIN;
  }
  return -EINPROGRESS;
}

/* ---- one endpoint ---- */

/* NULL: the NIC has no device now, or the peer's is of another kind. */
static struct rdma_device *take_for(const struct nic *nic, const struct lane_offer *offer) {
  struct rdma_device *device = take(nic);
  unsigned kind = offer->bytes[LANE_OFFER_KIND];
  if (device && kind != device->port.transport + 1u) {
    LOG_INFO("%s speaks %s, and the peer's device %s", device->port.name,
             rdma_transport_name(device->port.transport),
             kind <= RDMA_TRANSPORTS ? rdma_transport_name(kind - 1) : "something else");
    rdma_device_release(device);
    return NULL;
  }
  return device;
}

static bool find_addresses(struct rdma_qp *qp, int fd) {
  socklen_t here_bytes = sizeof qp->here, there_bytes = sizeof qp->there;
  return getsockname(fd, (struct sockaddr *)&qp->here, &here_bytes) == 0 &&
         getpeername(fd, (struct sockaddr *)&qp->there, &there_bytes) == 0;
}

static struct endpoint *qp_begin(const struct nic *nic, const struct endpoint_peer *peer,
                                 uint16_t port, bool is_sender) {
  struct rdma_device *device = take_for(nic, peer->offer);
  if (!device) {
    return NULL;
  }
  struct rdma_qp *qp = calloc(1, sizeof *qp);
  int fd = qp ? DESCRIPTOR(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) : -1;
  if (fd < 0) {
    free(qp);
    rdma_device_release(device);
    return NULL;
  }
  qp->endpoint.domain = (struct lane_domain){ device->index, atomic_load(&device->id) };
  qp->device = device;
  qp->api = device->api;
  qp->is_sender = is_sender;
  qp->job.run = run_step;
  qp->over_fd = fd;
  qp->send_bytes = is_sender ? RDMA_DATA_SLOT_BYTES : RDMA_CONTROL_SLOT_BYTES;
  qp->receive_bytes = is_sender ? RDMA_CONTROL_SLOT_BYTES : RDMA_DATA_SLOT_BYTES;
  qp->peer_key = peer->offer->bytes[LANE_OFFER_KEY];
  qp->tokens = *peer->tokens;
  qp->dscp = peer->dscp;
  bool has_begun = find_addresses(qp, peer->fd);
  tcp_address_set_port(&qp->there, port);
  has_begun = has_begun && begin(qp, is_sender ? step_connect : step_listen) == -EINPROGRESS;
  if (!has_begun) {
    endpoint_free(&qp->endpoint);
    return NULL;
  }
  return &qp->endpoint;
}

struct endpoint *endpoint_accept(const struct nic *nic, const struct endpoint_peer *peer) {
  return qp_begin(nic, peer, 0, false);
}

struct endpoint *endpoint_connect(const struct nic *nic, const struct endpoint_peer *peer,
                                  uint16_t port) {
  return qp_begin(nic, peer, port, true);
}

void endpoint_describe(const struct endpoint *endpoint, struct lane_offer *offer) {
  offer_of(((const struct rdma_qp *)endpoint)->device, endpoint->key_index, offer);
}

/* librdmacm tells more before the peer has answered. */
static bool is_connecting(const struct rdma_qp *qp) {
  return qp->step != step_listen && !qp->is_connected;
}

int endpoint_advance(struct endpoint *endpoint) {
  struct rdma_qp *qp = rdma_qp_of(endpoint);
  eventfd_t count;
  switch ((enum rdma_step)atomic_load(&qp->state)) {
  case RDMA_DONE:
    atomic_store(&qp->state, RDMA_IDLE);
    eventfd_read(qp->over_fd, &count);
    return qp->error ? qp->error : is_connecting(qp) ? -EINPROGRESS : 0;
  case RDMA_IDLE: /* librdmacm has an event */
    return begin(qp, rdma_qp_advance);
  default:
    return -EINPROGRESS;
  }
}

int endpoint_fd(const struct endpoint *endpoint) {
  const struct rdma_qp *qp = (const struct rdma_qp *)endpoint;
  bool is_idle = atomic_load(&qp->state) == RDMA_IDLE;
  return is_idle && is_connecting(qp) ? qp->events->fd : qp->over_fd;
}

int endpoint_stop(struct endpoint *endpoint) {
  return endpoint ? rdma_qp_stop(rdma_qp_of(endpoint)) : 0;
}

void endpoint_free(struct endpoint *endpoint) {
  struct rdma_qp *qp = rdma_qp_of(endpoint);
  if (!qp) {
    return;
  }
  if (rdma_worker_take_back(&qp->job)) {
    atomic_store(&qp->state, RDMA_IDLE);
  }
  int busy = RDMA_BUSY;
  if (!atomic_compare_exchange_strong(&qp->state, &busy, RDMA_ABANDONED)) {
    rdma_qp_destroy(qp);
  }
}
