/* SPDX-License-Identifier: Apache-2.0 */
/* See endpoint.h and rdma_qp.h: who has a device, and how librdmacm connects a queue pair. iWARP's
 * kernel side moves the queue pair by itself; for the others, what rdma_init_qp_attr returns is
 * passed to ibv_modify_qp. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/link/wire.h"

/* Marks of the kernel's own in what rdma_init_qp_attr returns for RoCE; ibv_modify_qp refuses them.
 */
#define KERNEL_BITS 0xE00000
#define RNR_RETRY 7 /* for ever */

/* ---- devices ---- */

bool endpoint_names_devices(void) {
  struct rdma_settings settings = rdma_device_settings();
  return !settings.off_why && (settings.hcas.count > 0 || settings.hcas.is_excluding);
}

bool endpoint_find(const struct nic *nic, char text[ENDPOINT_TEXT_MAX]) {
  char why[RDMA_WHY_MAX];
  endpoint_wait(nic, 1, false);
  struct rdma_device *device = rdma_device_take(nic, why);
  if (!device) {
    snprintf(text, ENDPOINT_TEXT_MAX, "%s", why[0] ? why : "the driver does not answer");
    return false;
  }
  snprintf(text, ENDPOINT_TEXT_MAX, "%s port %u (%s)", device->name, device->port,
           rdma_transport_name(device->transport));
  rdma_device_release(device);
  return true;
}

/* NULL: there is none, which is logged, or the search goes on in the background. */
static struct rdma_device *take_device(const struct nic *nic) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_device_take(nic, why);
  if (!device && why[0]) {
    rdma_device_log_refusal(nic, why);
  }
  return device;
}

static void offer_of(const struct rdma_device *device, uint8_t key_index,
                     struct lane_offer *offer) {
  *offer = (struct lane_offer){ .kind = (uint8_t)(device->transport + 1), .key = key_index };
}

bool endpoint_offer(const struct nic *nic, struct lane_offer *offer) {
  struct rdma_device *device = take_device(nic);
  if (device) {
    offer_of(device, 0, offer);
    rdma_device_release(device);
  }
  return device != NULL;
}

unsigned endpoint_remote_keys(const struct nic *nics, unsigned count, bool is_encrypted) {
  struct lane_offer unused;
  bool is_possible = false;
  if (is_encrypted) {
    rdma_device_log_refusal(nics, "STRATUS_ENCRYPT is on, and RDMA devices do not encrypt");
    return 0;
  }
  for (unsigned i = 0; i < count && !is_possible; i++) {
    is_possible = endpoint_offer(&nics[i], &unused) || rdma_device_may_come(&nics[i]);
  }
  return is_possible ? WIRE_REMOTE_KEYS : 0;
}

/* ---- what the worker does ---- */

/* What there is of an event after it was acknowledged: an identifier cannot be destroyed before. */
struct seen {
  struct rdma_qp *qp; /* NULL: the device's own, which has events of its own (rdma_device.h) */
  struct rdma_cm_id *id;
  enum rdma_cm_event_type type;
  int status;
  uint8_t token[LANE_TOKEN_BYTES];
};

static int failed(const struct rdma_qp *qp, const char *what, int error) {
  LOG_INFO("%s: librdmacm cannot %s: %s", qp->device->name, what, strerror(-error));
  return error;
}

static int connected(struct rdma_qp *qp) {
  static atomic_flag is_told = ATOMIC_FLAG_INIT;
  bool is_first = !atomic_flag_test_and_set(&is_told);
  atomic_store(&qp->is_connected, true);
  LOG_AT(is_first ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "%s: librdmacm has connected a queue pair",
         qp->device->name);
  return 0;
}

/* The address may have moved. */
static bool is_on_device(const struct rdma_qp *qp, const struct rdma_cm_id *id) {
  const struct rdma_device *device = qp->device;
  bool is_same = id->verbs == device->bound->verbs && id->port_num == device->port;
  if (!is_same) {
    rdma_device_lose(qp->device, "librdmacm finds another one at the NIC's address");
  }
  return is_same;
}

/* Whatever the worker does with a queue pair comes to a result (endpoint_result), or goes on:
 * -EINPROGRESS. Who hears of it may stop the queue pair at once. */
static void step(struct rdma_qp *qp, int (*take)(struct rdma_qp *qp, const struct seen *seen),
                 const struct seen *seen) {
  pthread_mutex_lock(&qp->in_use);
  int result = take(qp, seen);
  pthread_mutex_unlock(&qp->in_use);
  if (result != -EINPROGRESS) {
    atomic_store(&qp->result, result);
    eventfd_write(qp->news_fd, 1);
  }
}

/* ---- the queue pair ---- */

static int move(struct rdma_qp *qp, enum ibv_qp_state state) {
  const struct rdma_settings *settings = &qp->device->settings;
  struct ibv_qp_attr attributes = { .qp_state = state };
  int mask = 0;
  if (qp->api->init_qp_attr(qp->id, &attributes, &mask) != 0) {
    return -errno;
  }
  mask &= ~KERNEL_BITS;
  attributes.qp_access_flags = rdma_qp_access(qp);
  attributes.min_rnr_timer = RDMA_MIN_RNR_TIMER;
  attributes.timeout = settings->timeout;
  if (settings->service_level >= 0) {
    attributes.ah_attr.sl = (uint8_t)settings->service_level;
  }
  /* Switches spread flows over paths by the UDP source port, which devices make of it. Linux sets
   * it from 5.7 on. */
  if (attributes.ah_attr.grh.flow_label == 0) {
    attributes.ah_attr.grh.flow_label = qp->qp->qp_num * 0x9E3779B1u >> 12;
  }
  return mask ? -qp->api->modify_qp(qp->qp, &attributes, mask) : 0;
}

static int move_to_ready(struct rdma_qp *qp) {
  int error = move(qp, IBV_QPS_INIT); /* its partition */
  error = error ? error : move(qp, IBV_QPS_RTR);
  return error ? error : move(qp, IBV_QPS_RTS);
}

static struct rdma_conn_param parameters(const struct rdma_qp *qp,
                                         const uint8_t token[LANE_TOKEN_BYTES]) {
  return (struct rdma_conn_param){ .private_data = token,
                                   .private_data_len = LANE_TOKEN_BYTES,
                                   .responder_resources = 1,
                                   .initiator_depth = 1,
                                   .retry_count = qp->device->settings.retry_count,
                                   .rnr_retry_count = RNR_RETRY,
                                   .qp_num = qp->qp->qp_num };
}

/* Is it the peer of the handshake? */
static bool is_peer(const struct seen *seen, const uint8_t token[LANE_TOKEN_BYTES]) {
  return hash_is_equal(seen->token, token, LANE_TOKEN_BYTES);
}

/* ---- the listening side ---- */

static int await_request(struct rdma_qp *qp) {
  const struct verbs_api *api = qp->api;
  tcp_address_set_port(&qp->here, 0);
  if (api->create_id(qp->device->channel, &qp->listener, qp, RDMA_PS_TCP) != 0 ||
      api->bind_addr(qp->listener, (struct sockaddr *)&qp->here) != 0) {
    return failed(qp, "take the NIC's address", -errno);
  }
  if (!is_on_device(qp, qp->listener)) {
    return -ENODEV;
  }
  if (api->listen(qp->listener, RDMA_CM_BACKLOG) != 0) {
    return failed(qp, "listen", -errno);
  }
  qp->endpoint.port = be16toh(api->get_src_port(qp->listener));
  return 0;
}

static void reject(const struct rdma_qp *qp, struct rdma_cm_id *id) {
  if (qp->qp) {
    LOG_WARN_EVERY(RDMA_STRANGER_INTERVAL_NS,
                   "%s: rejected a queue pair that does not belong to this job", qp->device->name);
  }
  qp->api->reject(id, NULL, 0);
  rdmacm_destroy_id(qp->api, id);
}

static int take_request(struct rdma_qp *qp, const struct seen *seen) {
  bool is_destroyed = !qp->qp; /* since it could not be stopped otherwise */
  if (is_destroyed || !qp->listener || qp->id || !is_peer(seen, qp->tokens.request)) {
    reject(qp, seen->id);
    return -EINPROGRESS;
  }
  qp->id = seen->id;
  rdmacm_destroy_id(qp->api, qp->listener);
  qp->listener = NULL;
  if (!is_on_device(qp, qp->id)) {
    return -ENODEV;
  }
  struct rdma_conn_param answer = parameters(qp, qp->tokens.answer);
  int error = move_to_ready(qp);
  if (!error && qp->api->accept(qp->id, &answer) != 0) {
    error = -errno;
  }
  return error ? failed(qp, "accept", error) : -EINPROGRESS;
}

/* ---- the dialling side ---- */

static void set_traffic_class(const struct rdma_qp *qp) {
  int wanted = qp->device->settings.traffic_class;
  uint8_t class = (uint8_t)(wanted >= 0 ? wanted : qp->dscp >= 0 ? qp->dscp << 2 : 0);
  if (class &&
      qp->api->set_option(qp->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &class, sizeof(class)) != 0) {
    LOG_TRACE("%s: librdmacm sets no traffic class: %s", qp->device->name, strerror(errno));
  }
}

static int resolve(struct rdma_qp *qp) {
  tcp_address_set_port(&qp->here, 0);
  if (qp->api->create_id(qp->device->channel, &qp->id, qp, RDMA_PS_TCP) != 0) {
    return failed(qp, "make an identifier", -errno);
  }
  set_traffic_class(qp);
  if (qp->api->resolve_addr(qp->id, (struct sockaddr *)&qp->here, (struct sockaddr *)&qp->there,
                            RDMA_CM_PHASE_MS) != 0) {
    return failed(qp, "resolve the peer's address", -errno);
  }
  return -EINPROGRESS;
}

static int find_route(const struct rdma_qp *qp) {
  if (!is_on_device(qp, qp->id)) {
    return -ENODEV;
  }
  return qp->api->resolve_route(qp->id, RDMA_CM_PHASE_MS) ? failed(qp, "find a route", -errno)
                                                          : -EINPROGRESS;
}

static int send_request(const struct rdma_qp *qp) {
  struct rdma_conn_param asked = parameters(qp, qp->tokens.request);
  return qp->api->connect(qp->id, &asked) ? failed(qp, "connect", -errno) : -EINPROGRESS;
}

/* must_establish: the queue pair must still be moved, and the peer be notified. */
static int take_answer(struct rdma_qp *qp, const struct seen *seen, bool must_establish) {
  if (!is_peer(seen, qp->tokens.answer)) {
    LOG_INFO("%s: what answered for the peer's queue pair is not the peer", qp->device->name);
    return -EKEYREJECTED;
  }
  int error = must_establish ? move_to_ready(qp) : 0;
  if (!error && must_establish && qp->api->establish(qp->id) != 0) {
    error = -errno;
  }
  return error ? failed(qp, "connect", error) : connected(qp);
}

/* ---- events ---- */

static int event_failed(const struct rdma_qp *qp, const struct seen *seen) {
  const char *text = qp->api->event_str(seen->type);
  LOG_AT(qp->is_connected ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO, "%s: librdmacm: %s (%d)",
         qp->device->name, text, seen->status);
  switch (seen->type) {
  case RDMA_CM_EVENT_DEVICE_REMOVAL:
    rdma_device_lose(qp->device, text);
    return -ENODEV;
  case RDMA_CM_EVENT_REJECTED:
    return -ECONNREFUSED;
  case RDMA_CM_EVENT_DISCONNECTED:
    return -ECONNRESET;
  default:
    return -EHOSTUNREACH;
  }
}

static int take(struct rdma_qp *qp, const struct seen *seen) {
  switch (seen->type) {
  case RDMA_CM_EVENT_ADDR_RESOLVED:
    return find_route(qp);
  case RDMA_CM_EVENT_ROUTE_RESOLVED:
    return send_request(qp);
  case RDMA_CM_EVENT_CONNECT_REQUEST:
    return take_request(qp, seen);
  case RDMA_CM_EVENT_CONNECT_RESPONSE:
    return take_answer(qp, seen, true);
  case RDMA_CM_EVENT_ESTABLISHED: /* iWARP's only answer */
    return qp->is_sender && !qp->is_connected ? take_answer(qp, seen, false) : connected(qp);
  case RDMA_CM_EVENT_TIMEWAIT_EXIT:
  case RDMA_CM_EVENT_ADDR_CHANGE: /* of a bond: if it breaks the queue pair, that has an event of
                                     its own */
    return -EINPROGRESS;
  default:
    return event_failed(qp, seen);
  }
}

static void copy_event(const struct rdma_cm_event *event, struct seen *seen) {
  const struct rdma_conn_param *connection = &event->param.conn;
  bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
  *seen = (struct seen){ .qp = (is_request ? event->listen_id : event->id)->context,
                         .id = event->id,
                         .type = event->event,
                         .status = event->status };
  if (is_request || event->event == RDMA_CM_EVENT_CONNECT_RESPONSE ||
      event->event == RDMA_CM_EVENT_ESTABLISHED) {
    if (connection->private_data && connection->private_data_len >= LANE_TOKEN_BYTES) {
      memcpy(seen->token, connection->private_data, LANE_TOKEN_BYTES);
    }
  }
}

void rdma_qp_take_events(struct rdma_queue *queue) {
  struct rdma_device *device = LIST_ENTRY(queue, struct rdma_device, queue);
  const struct verbs_api *api = device->api;
  struct rdma_cm_event *event;
  struct seen seen;
  for (int i = 0; i < RDMA_CM_EVENTS_MOST; i++) {
    if (api->get_cm_event(device->channel, &event) != 0) {
      if (errno != EAGAIN && errno != EINTR) {
        queue->fd = -1;
        rdma_device_lose(device, "librdmacm cannot report events");
      }
      return;
    }
    copy_event(event, &seen);
    api->ack_cm_event(event);
    if (seen.qp) {
      step(seen.qp, take, &seen);
    }
  }
}

/* ---- one endpoint ---- */

static int begin(struct rdma_qp *qp, const struct seen *nothing) {
  static atomic_flag has_logged = ATOMIC_FLAG_INIT;
  char why[RDMA_WHY_MAX];
  const struct rdma_device *device = qp->device;
  (void)nothing;
  int error = rdma_qp_make(qp, why);
  if (error) {
    rdma_device_log_refusal(&device->nic, why);
    return error;
  }
  if (!atomic_flag_test_and_set(&has_logged)) {
    LOG_INFO("RDMA through %s: device %s, port %u", device->nic.name, device->name, device->port);
  }
  return qp->is_sender ? resolve(qp) : await_request(qp);
}

static void run_begin(struct rdma_job *job) {
  step(LIST_ENTRY(job, struct rdma_qp, job), begin, NULL);
}

/* NULL: the NIC has no device now, or the peer's is of another kind. */
static struct rdma_device *take_kind(const struct nic *nic, const struct lane_offer *offer) {
  struct rdma_device *device = take_device(nic);
  unsigned kind = offer->kind;
  if (device && kind != device->transport + 1u) {
    LOG_INFO("%s speaks %s, and the peer's device %s", device->name,
             rdma_transport_name(device->transport),
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
  struct rdma_device *device = take_kind(nic, peer->offer);
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
  qp->endpoint.domain = (struct lane_domain){ device->index, rdma_memory_domain(device->index) };
  qp->device = device;
  qp->api = device->api;
  qp->is_sender = is_sender;
  qp->job.run = run_begin;
  atomic_store(&qp->result, -EINPROGRESS);
  qp->news_fd = fd;
  pthread_mutex_init(&qp->in_use, NULL);
  qp->send_bytes = is_sender ? RDMA_DATA_SLOT_BYTES : RDMA_CONTROL_SLOT_BYTES;
  qp->receive_bytes = is_sender ? RDMA_CONTROL_SLOT_BYTES : RDMA_DATA_SLOT_BYTES;
  qp->peer_key = peer->offer->key;
  qp->tokens = *peer->tokens;
  qp->dscp = peer->dscp;
  bool has_addresses = find_addresses(qp, peer->fd);
  tcp_address_set_port(&qp->there, port);
  if (!has_addresses || !rdma_worker_submit(&device->queue, &qp->job)) {
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

int endpoint_result(struct endpoint *endpoint) {
  struct rdma_qp *qp = rdma_qp_of(endpoint);
  eventfd_t count;
  eventfd_read(qp->news_fd, &count);
  return atomic_load(&qp->result);
}

int endpoint_fd(const struct endpoint *endpoint) {
  return ((const struct rdma_qp *)endpoint)->news_fd;
}
