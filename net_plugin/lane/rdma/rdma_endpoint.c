/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_endpoint.h and endpoint.h. */
#include "net_plugin/lane/rdma/rdma_endpoint.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/rdma_opener.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/rdma/rdma_worker.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/link/wire.h"

enum endpoint_state { ENDPOINT_IDLE, ENDPOINT_BUSY, ENDPOINT_DONE, ENDPOINT_ABANDONED };

struct rdma_endpoint {
  struct endpoint endpoint; /* first */
  struct rdma_job job;
  int (*step)(struct rdma_endpoint *end); /* that a worker takes, or took last */
  atomic_int state;                       /* enum endpoint_state */
  int over_fd;                            /* an eventfd: readable when a step is over */
  bool is_sender;

  /* the worker's while a step is in progress */
  struct rdma_device *device; /* held until the queue pair is made */
  struct rdma_qp *qp;         /* NULL: not made yet */
  int error;                  /* of the step */
  struct rdma_facts peer;
  struct lane_tokens tokens;
  struct sockaddr_storage here, there;
  int dscp;
};

static struct rdma_endpoint *end_of(struct endpoint *endpoint) {
  return (struct rdma_endpoint *)endpoint;
}

struct rdma_qp *rdma_endpoint_qp(struct endpoint *endpoint) {
  return end_of(endpoint)->qp;
}

/* ---- devices ---- */

void endpoint_configure(void) {
  rdma_device_configure(NULL);
}

bool endpoint_names_devices(void) {
  struct rdma_settings settings = rdma_device_settings();
  return !settings.is_off && (settings.hcas.count > 0 || settings.hcas.is_excluding);
}

bool endpoint_find(const struct nic *nic, char text[ENDPOINT_TEXT_MAX]) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_device_open(nic, why);
  if (!device) {
    snprintf(text, ENDPOINT_TEXT_MAX, "%s", why);
    return false;
  }
  snprintf(text, ENDPOINT_TEXT_MAX, "%s port %u (%s)", device->port.name, device->port.port,
           rdma_transport_name(device->port.transport));
  rdma_device_close(device);
  return true;
}

/* *is_opening: the search goes on in the background. */
static bool has_device(const struct nic *nic, bool *is_opening) {
  char why[RDMA_WHY_MAX];
  bool has_one = rdma_opener_has(nic, why);
  *is_opening = !has_one && !why[0];
  if (!has_one && why[0]) {
    rdma_device_log_refusal(nic, why);
  }
  return has_one;
}

void endpoint_wait(const struct nic *nics, unsigned count, bool is_encrypted) {
  if (!is_encrypted) {
    rdma_opener_wait(nics, count);
  }
}

unsigned endpoint_remote_keys(const struct nic *nics, unsigned count, bool is_encrypted) {
  bool is_possible = false;
  if (is_encrypted) {
    rdma_device_log_refusal(nics, "STRATUS_ENCRYPT is on, and RDMA devices do not encrypt");
    return 0;
  }
  for (unsigned i = 0; i < count && !is_possible; i++) {
    bool is_opening;
    is_possible = has_device(&nics[i], &is_opening) || is_opening || rdma_device_may_come(&nics[i]);
  }
  return is_possible ? WIRE_REMOTE_KEYS : 0;
}

bool endpoint_has_device(const struct nic *nic) {
  bool is_opening;
  return has_device(nic, &is_opening);
}

void endpoint_stop_all(void) {
  rdma_opener_finish();
  rdma_worker_finish();
  rdma_memory_release(true);
}

/* ---- steps ---- */

/* What no lane has of it. By a worker, or while no step is in progress. */
static void end_free(struct rdma_endpoint *end) {
  if (end->qp) {
    rdma_qp_abandon(end->qp);
  }
  rdma_endpoint_taken(&end->endpoint);
}

void rdma_endpoint_taken(struct endpoint *endpoint) {
  struct rdma_endpoint *end = end_of(endpoint);
  descriptor_close(end->over_fd);
  hash_wipe(&end->tokens, sizeof(end->tokens));
  free(end);
}

/* The descriptor first: once the state is DONE, the owner may close it. */
static bool run_step(struct rdma_job *job) {
  struct rdma_endpoint *end = LIST_ENTRY(job, struct rdma_endpoint, job);
  int busy = ENDPOINT_BUSY;
  end->error = end->step(end);
  eventfd_write(end->over_fd, 1);
  if (!atomic_compare_exchange_strong(&end->state, &busy, ENDPOINT_DONE)) {
    end_free(end);
  }
  return true;
}

/* -EAGAIN: no thread can be had for it. */
static int begin(struct rdma_endpoint *end, const struct nic *nic,
                 int (*step)(struct rdma_endpoint *end)) {
  end->step = step;
  atomic_store(&end->state, ENDPOINT_BUSY);
  if (!rdma_worker_submit(RDMA_QUEUE_MAKE, nic, &end->job) && rdma_worker_take_back(&end->job)) {
    atomic_store(&end->state, ENDPOINT_IDLE);
    return -EAGAIN;
  }
  return -EINPROGRESS;
}

static int make(struct rdma_endpoint *end) {
  static atomic_flag has_logged = ATOMIC_FLAG_INIT;
  char why[RDMA_WHY_MAX];
  struct nic nic = end->device->nic;
  end->qp = rdma_qp_new(end->device, end->is_sender, why);
  end->device = NULL;
  if (!end->qp) {
    rdma_device_log_refusal(&nic, why);
    return -ENODEV;
  }
  end->endpoint.domain = end->qp->domain;
  if (!atomic_flag_test_and_set(&has_logged)) {
    LOG_INFO("RDMA through %s: device %s, port %u", nic.name, end->qp->device->port.name,
             end->qp->device->port.port);
  }
  return 0;
}

static int make_and_accept(struct rdma_endpoint *end) {
  int error = make(end);
  return error ? error
               : rdma_qp_listen(end->qp, &end->peer, &end->here, &end->tokens, &end->endpoint.port);
}

static int begin_to_connect(struct rdma_endpoint *end) {
  return rdma_qp_connect(end->qp, &end->peer, &end->here, &end->there, &end->tokens, end->dscp);
}

static int go_on_connecting(struct rdma_endpoint *end) {
  return rdma_qp_advance(end->qp);
}

/* ---- one endpoint ---- */

/* NULL: the NIC has no device now. */
static struct rdma_endpoint *end_new(const struct nic *nic, bool is_sender) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_opener_take(nic, why);
  if (!device) {
    if (why[0]) {
      rdma_device_log_refusal(nic, why);
    }
    return NULL;
  }
  struct rdma_endpoint *end = calloc(1, sizeof *end);
  int fd = end ? DESCRIPTOR(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) : -1;
  if (fd < 0) {
    free(end);
    rdma_device_release(device);
    return NULL;
  }
  end->job.run = run_step;
  end->over_fd = fd;
  end->is_sender = is_sender;
  end->device = device;
  return end;
}

/* NULL: no thread can be had. */
static struct endpoint *end_begin(struct rdma_endpoint *end, const struct nic *nic,
                                  int (*step)(struct rdma_endpoint *end)) {
  if (begin(end, nic, step) != -EINPROGRESS) {
    endpoint_free(&end->endpoint);
    return NULL;
  }
  return &end->endpoint;
}

static int keep_peer(struct rdma_endpoint *end, const struct endpoint_peer *peer) {
  socklen_t here_bytes = sizeof end->here, there_bytes = sizeof end->there;
  rdma_facts_decode(peer->offer, &end->peer);
  end->tokens = *peer->tokens;
  end->dscp = peer->dscp;
  bool is_known = getsockname(peer->fd, (struct sockaddr *)&end->here, &here_bytes) == 0 &&
                  getpeername(peer->fd, (struct sockaddr *)&end->there, &there_bytes) == 0;
  return is_known ? 0 : -errno;
}

struct endpoint *endpoint_offer(const struct nic *nic) {
  struct rdma_endpoint *end = end_new(nic, true);
  return end ? end_begin(end, nic, make) : NULL;
}

struct endpoint *endpoint_accept(const struct nic *nic, const struct endpoint_peer *peer) {
  struct rdma_endpoint *end = end_new(nic, false);
  if (end && keep_peer(end, peer) != 0) {
    endpoint_free(&end->endpoint);
    return NULL;
  }
  return end ? end_begin(end, nic, make_and_accept) : NULL;
}

void endpoint_describe(const struct endpoint *endpoint, struct lane_offer *offer) {
  struct rdma_facts facts;
  struct rdma_qp *qp = ((const struct rdma_endpoint *)endpoint)->qp;
  qp->key_index = endpoint->key_index;
  rdma_qp_facts(qp, &facts);
  rdma_facts_encode(&facts, offer);
}

int endpoint_connect(struct endpoint *endpoint, const struct endpoint_peer *peer, uint16_t port) {
  struct rdma_endpoint *end = end_of(endpoint);
  int error = keep_peer(end, peer);
  if (error) {
    return error;
  }
  tcp_address_set_port(&end->there, port);
  return begin(end, &end->qp->device->nic, begin_to_connect);
}

/* librdmacm tells more before the peer has answered. */
static bool is_connecting(const struct rdma_endpoint *end) {
  return (end->step == begin_to_connect || end->step == go_on_connecting) && !end->qp->is_connected;
}

int endpoint_advance(struct endpoint *endpoint) {
  struct rdma_endpoint *end = end_of(endpoint);
  eventfd_t count;
  switch ((enum endpoint_state)atomic_load(&end->state)) {
  case ENDPOINT_DONE:
    atomic_store(&end->state, ENDPOINT_IDLE);
    eventfd_read(end->over_fd, &count);
    return end->error ? end->error : is_connecting(end) ? -EINPROGRESS : 0;
  case ENDPOINT_IDLE: /* librdmacm has an event */
    return begin(end, &end->qp->device->nic, go_on_connecting);
  default:
    return -EINPROGRESS;
  }
}

int endpoint_fd(const struct endpoint *endpoint) {
  const struct rdma_endpoint *end = (const struct rdma_endpoint *)endpoint;
  bool is_idle = atomic_load(&end->state) == ENDPOINT_IDLE;
  return is_idle && is_connecting(end) ? end->qp->events->fd : end->over_fd;
}

int endpoint_stop(struct endpoint *endpoint) {
  struct rdma_endpoint *end = end_of(endpoint);
  if (!end || end->is_sender) {
    return 0; /* no peer can write */
  }
  bool is_busy = atomic_load(&end->state) == ENDPOINT_BUSY;
  return is_busy ? rdma_qp_stop_moving(end->qp) : rdma_qp_stop(end->qp);
}

void endpoint_free(struct endpoint *endpoint) {
  struct rdma_endpoint *end = end_of(endpoint);
  if (!end) {
    return;
  }
  if (rdma_worker_take_back(&end->job)) {
    atomic_store(&end->state, ENDPOINT_IDLE);
  }
  int busy = ENDPOINT_BUSY;
  if (!atomic_compare_exchange_strong(&end->state, &busy, ENDPOINT_ABANDONED)) {
    if (end->device) {
      rdma_device_release(end->device);
    }
    end_free(end);
  }
}
