/* SPDX-License-Identifier: Apache-2.0 */
/* How librdmacm connects a queue pair: see rdma_qp.h. Events are copied and acknowledged at once,
 * since an identifier cannot be destroyed before. iWARP's kernel side moves the queue pair by
 * itself; for the others, what rdma_init_qp_attr returns is passed to ibv_modify_qp. */
#include "net_plugin/lane/rdma/rdma_qp.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/tcp_socket.h"

/* Marks of the kernel's own in what rdma_init_qp_attr returns for RoCE; ibv_modify_qp refuses them.
 */
#define KERNEL_BITS 0xE00000
#define RNR_RETRY 7 /* for ever */

/* What there is of an event after it was acknowledged. */
struct seen {
  struct rdma_cm_id *id;
  enum rdma_cm_event_type type;
  int status;
  uint8_t token[LANE_TOKEN_BYTES];
};

static int failed(const struct rdma_qp *qp, const char *what, int error) {
  LOG_INFO("%s: librdmacm cannot %s: %s", qp->device->port.name, what, strerror(-error));
  return error;
}

static void connected(struct rdma_qp *qp) {
  static atomic_flag is_told = ATOMIC_FLAG_INIT;
  bool is_first = !atomic_flag_test_and_set(&is_told);
  qp->is_connected = true;
  LOG_AT(is_first ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "%s: librdmacm has connected a queue pair",
         qp->device->port.name);
}

static int open_events(struct rdma_qp *qp) {
  qp->events = rdmacm_open_channel(qp->api->cm);
  return qp->events ? 0 : failed(qp, "create an event channel", -errno);
}

/* The address may have moved. */
static bool is_on_device(const struct rdma_qp *qp, const struct rdma_cm_id *id) {
  const struct rdma_device *device = qp->device;
  bool is_same = id->verbs == device->bound->verbs && id->port_num == device->port.port;
  if (!is_same) {
    rdma_device_lose(qp->device, "librdmacm finds another one at the NIC's address");
  }
  return is_same;
}

/* ---- the queue pair ---- */

static int traffic_class(const struct rdma_qp *qp, int dscp) {
  int wanted = qp->device->settings.traffic_class;
  return wanted >= 0 ? wanted : dscp >= 0 ? dscp << 2 : 0;
}

static int move(struct rdma_qp *qp, enum ibv_qp_state state) {
  const struct rdma_settings *settings = &qp->device->settings;
  struct ibv_qp_attr attributes = { .qp_state = state };
  int mask = 0;
  if (qp->api->cm->init_qp_attr(qp->id, &attributes, &mask) != 0) {
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

int rdma_qp_listen(struct rdma_qp *qp) {
  const struct rdmacm_api *cm = qp->api->cm;
  int error = open_events(qp);
  if (error) {
    return error;
  }
  tcp_address_set_port(&qp->here, 0);
  if (cm->create_id(qp->events, &qp->listener, NULL, RDMA_PS_TCP) != 0 ||
      cm->bind_addr(qp->listener, (struct sockaddr *)&qp->here) != 0) {
    return failed(qp, "take the NIC's address", -errno);
  }
  if (!is_on_device(qp, qp->listener)) {
    return -ENODEV;
  }
  if (cm->listen(qp->listener, RDMA_CM_BACKLOG) != 0) {
    return failed(qp, "listen", -errno);
  }
  qp->endpoint.port = be16toh(cm->get_src_port(qp->listener));
  return 0;
}

static void reject(const struct rdma_qp *qp, struct rdma_cm_id *id) {
  LOG_WARN_EVERY(RDMA_STRANGER_INTERVAL_NS,
                 "%s: rejected a queue pair that does not belong to this job",
                 qp->device->port.name);
  qp->api->cm->reject(id, NULL, 0);
  rdmacm_destroy_id(qp->api->cm, id);
}

static int take_request(struct rdma_qp *qp, const struct seen *seen) {
  if (!qp->listener || qp->id || !is_peer(seen, qp->tokens.request)) {
    reject(qp, seen->id);
    return 0;
  }
  qp->id = seen->id;
  rdmacm_destroy_id(qp->api->cm, qp->listener);
  qp->listener = NULL;
  if (!is_on_device(qp, qp->id)) {
    return -ENODEV;
  }
  struct rdma_conn_param answer = parameters(qp, qp->tokens.answer);
  int error = move_to_ready(qp);
  if (!error && qp->api->cm->accept(qp->id, &answer) != 0) {
    error = -errno;
  }
  return error ? failed(qp, "accept", error) : 0;
}

/* ---- the dialling side ---- */

static void set_traffic_class(const struct rdma_qp *qp) {
  uint8_t class = (uint8_t)traffic_class(qp, qp->dscp);
  if (class && qp->api->cm->set_option(qp->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &class,
                                       sizeof(class)) != 0) {
    LOG_TRACE("%s: librdmacm sets no traffic class: %s", qp->device->port.name, strerror(errno));
  }
}

int rdma_qp_connect(struct rdma_qp *qp) {
  int error = open_events(qp);
  if (error) {
    return error;
  }
  tcp_address_set_port(&qp->here, 0);
  if (qp->api->cm->create_id(qp->events, &qp->id, NULL, RDMA_PS_TCP) != 0) {
    return failed(qp, "make an identifier", -errno);
  }
  set_traffic_class(qp);
  if (qp->api->cm->resolve_addr(qp->id, (struct sockaddr *)&qp->here, (struct sockaddr *)&qp->there,
                                RDMA_CM_PHASE_MS) != 0) {
    return failed(qp, "resolve the peer's address", -errno);
  }
  return 0;
}

static int find_route(const struct rdma_qp *qp) {
  if (!is_on_device(qp, qp->id)) {
    return -ENODEV;
  }
  return qp->api->cm->resolve_route(qp->id, RDMA_CM_PHASE_MS) ? failed(qp, "find a route", -errno)
                                                              : 0;
}

static int request(const struct rdma_qp *qp) {
  struct rdma_conn_param asked = parameters(qp, qp->tokens.request);
  return qp->api->cm->connect(qp->id, &asked) ? failed(qp, "connect", -errno) : 0;
}

/* must_establish: the queue pair must still be moved, and the peer be notified. */
static int take_answer(struct rdma_qp *qp, const struct seen *seen, bool must_establish) {
  if (!is_peer(seen, qp->tokens.answer)) {
    LOG_INFO("%s: what answered for the peer's queue pair is not the peer", qp->device->port.name);
    return -EKEYREJECTED;
  }
  int error = must_establish ? move_to_ready(qp) : 0;
  if (!error && must_establish && qp->api->cm->establish(qp->id) != 0) {
    error = -errno;
  }
  if (!error) {
    connected(qp);
  }
  return error ? failed(qp, "connect", error) : 0;
}

/* ---- events ---- */

static int event_failed(const struct rdma_qp *qp, const struct seen *seen) {
  const char *text = qp->api->cm->event_str(seen->type);
  LOG_AT(qp->is_connected ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO, "%s: librdmacm: %s (%d)",
         qp->device->port.name, text, seen->status);
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
    return request(qp);
  case RDMA_CM_EVENT_CONNECT_REQUEST:
    return take_request(qp, seen);
  case RDMA_CM_EVENT_CONNECT_RESPONSE:
    return take_answer(qp, seen, true);
  case RDMA_CM_EVENT_ESTABLISHED:
    if (!qp->is_sender) {
      connected(qp);
    }
    return qp->is_connected ? 0 : take_answer(qp, seen, false); /* iWARP's only answer */
  case RDMA_CM_EVENT_TIMEWAIT_EXIT:
  case RDMA_CM_EVENT_ADDR_CHANGE: /* of a bond: if it breaks the queue pair, that has an event of
                                     its own */
    return 0;
  default:
    return event_failed(qp, seen);
  }
}

static void copy_event(const struct rdma_cm_event *event, struct seen *seen) {
  const struct rdma_conn_param *connection = &event->param.conn;
  *seen = (struct seen){ .id = event->id, .type = event->event, .status = event->status };
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
      event->event == RDMA_CM_EVENT_CONNECT_RESPONSE || event->event == RDMA_CM_EVENT_ESTABLISHED) {
    if (connection->private_data && connection->private_data_len >= LANE_TOKEN_BYTES) {
      memcpy(seen->token, connection->private_data, LANE_TOKEN_BYTES);
    }
  }
}

int rdma_qp_advance(struct rdma_qp *qp) {
  struct rdma_cm_event *event;
  int error = 0;
  for (int i = 0; i < RDMA_CM_EVENTS_MOST && !error; i++) {
    if (qp->api->cm->get_cm_event(qp->events, &event) != 0) {
      error = errno == EAGAIN || errno == EINTR ? 0 : failed(qp, "report events", -errno);
      break;
    }
    struct seen seen;
    copy_event(event, &seen);
    qp->api->cm->ack_cm_event(event);
    error = take(qp, &seen);
  }
  return error;
}
