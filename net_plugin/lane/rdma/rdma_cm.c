/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_cm.h. Events are copied and acknowledged at once, since an identifier cannot be
 * destroyed before. iWARP's kernel side moves the queue pair by itself; for the others, what
 * rdma_init_qp_attr returns is passed to ibv_modify_qp. */
#include "net_plugin/lane/rdma/rdma_cm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_socket.h"

/* Marks of the kernel's own in what rdma_init_qp_attr returns for RoCE; ibv_modify_qp refuses them.
 */
#define KERNEL_BITS 0xE00000

struct rdma_cm {
  const struct rdmacm_api *api;
  struct rdma_event_channel *channel;
  struct rdma_cm_id *listener; /* until the peer's request has come */
  struct rdma_cm_id *id;
  int deadline_fd;
  bool is_dialler, is_connected;
  struct lane_tokens tokens;
};

/* What there is of an event after it was acknowledged. */
struct seen {
  struct rdma_cm_id *id;
  enum rdma_cm_event_type type;
  int status;
  uint32_t number; /* of the peer's queue pair; 0: unknown */
  uint8_t token[LANE_TOKEN_BYTES];
};

static int failed(const struct rdma_qp *qp, const char *what, int error) {
  LOG_INFO("%s: librdmacm cannot %s: %s", qp->device->port.name, what, strerror(-error));
  return error;
}

static void connected(const struct rdma_qp *qp) {
  static atomic_flag is_told = ATOMIC_FLAG_INIT;
  bool is_first = !atomic_flag_test_and_set(&is_told);
  qp->cm->is_connected = true;
  LOG_AT(is_first ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "%s: librdmacm has connected a queue pair",
         qp->device->port.name);
}

bool rdma_cm_is_connected(const struct rdma_cm *cm) {
  return cm->is_connected;
}

int rdma_cm_event_fd(const struct rdma_cm *cm) {
  return cm->channel->fd;
}

int rdma_cm_deadline_fd(const struct rdma_cm *cm) {
  return cm->deadline_fd;
}

/* ---- life ---- */

static int make(struct rdma_qp *qp, const struct rdma_facts *peer,
                const struct lane_tokens *tokens) {
  int error = rdma_qp_set_peer(qp, peer);
  if (error) {
    return error;
  }
  const struct rdmacm_api *api = qp->api->cm;
  struct rdma_cm *cm = calloc(1, sizeof(*cm));
  if (!cm) {
    return -ENOMEM;
  }
  qp->cm = cm;
  cm->api = api;
  cm->tokens = *tokens;
  cm->deadline_fd = -1;
  cm->channel = rdmacm_open_channel(api);
  return cm->channel ? 0 : failed(qp, "create an event channel", -errno);
}

void rdma_cm_free(struct rdma_cm *cm) {
  if (!cm) {
    return;
  }
  rdmacm_destroy_id(cm->api, cm->listener);
  rdmacm_destroy_id(cm->api, cm->id);
  rdmacm_close_channel(cm->api, cm->channel);
  if (cm->deadline_fd >= 0) {
    descriptor_close(cm->deadline_fd);
  }
  hash_wipe(&cm->tokens, sizeof(cm->tokens));
  free(cm);
}

/* It finds the device by the address, where another one may have it, too. */
static bool is_on_device(const struct rdma_qp *qp, const struct rdma_cm_id *id) {
  const struct rdma_port *port = &qp->device->port;
  bool is_same =
      id->verbs && !strcmp(id->verbs->device->name, port->name) && id->port_num == port->port;
  if (!is_same) {
    LOG_INFO("%s port %u does not have the address of its NIC: librdmacm finds %s port %u there",
             port->name, port->port, id->verbs ? id->verbs->device->name : "no device",
             id->port_num);
  }
  return is_same;
}

/* ---- the queue pair ---- */

static int move(struct rdma_qp *qp, enum ibv_qp_state state) {
  const struct rdma_settings *settings = &qp->device->settings;
  struct ibv_qp_attr attributes = { .qp_state = state };
  int mask = 0;
  if (qp->cm->api->init_qp_attr(qp->cm->id, &attributes, &mask) != 0) {
    return -errno;
  }
  mask &= ~KERNEL_BITS;
  attributes.qp_access_flags = rdma_qp_access(qp);
  attributes.min_rnr_timer = RDMA_MIN_RNR_TIMER;
  attributes.timeout = settings->timeout;
  if (settings->service_level >= 0) {
    attributes.ah_attr.sl = (uint8_t)settings->service_level;
  }
  attributes.ah_attr.grh.flow_label = rdma_qp_flow_label(qp); /* for devices that use it */
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
                                   .rnr_retry_count = RDMA_RNR_RETRY,
                                   .qp_num = qp->qp->qp_num };
}

/* Is it the peer of the handshake, and that queue pair? */
static bool is_peer(const struct rdma_qp *qp, const struct seen *seen,
                    const uint8_t token[LANE_TOKEN_BYTES]) {
  return hash_is_equal(seen->token, token, LANE_TOKEN_BYTES) &&
         (qp->device->port.transport == RDMA_IWARP || seen->number == qp->peer.number);
}

/* ---- the listening side ---- */

int rdma_cm_listen(struct rdma_qp *qp, const struct rdma_facts *peer,
                   const struct sockaddr_storage *at, const struct lane_tokens *tokens,
                   uint16_t *port) {
  struct sockaddr_storage address = *at;
  const struct itimerspec patience = { .it_value.tv_sec = RDMA_CM_PATIENCE_S };
  int error = make(qp, peer, tokens);
  if (error) {
    return error;
  }
  struct rdma_cm *cm = qp->cm;
  tcp_address_set_port(&address, 0);
  if (cm->api->create_id(cm->channel, &cm->listener, NULL, RDMA_PS_TCP) != 0 ||
      cm->api->bind_addr(cm->listener, (struct sockaddr *)&address) != 0) {
    return failed(qp, "take the NIC's address", -errno);
  }
  if (!is_on_device(qp, cm->listener)) {
    return -ENODEV;
  }
  cm->deadline_fd = DESCRIPTOR(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (cm->deadline_fd < 0 || timerfd_settime(cm->deadline_fd, 0, &patience, NULL) != 0 ||
      cm->api->listen(cm->listener, RDMA_CM_BACKLOG) != 0) {
    return failed(qp, "listen", -errno);
  }
  *port = be16toh(cm->api->get_src_port(cm->listener));
  return 0;
}

static void reject(const struct rdma_qp *qp, struct rdma_cm_id *id) {
  LOG_WARN_EVERY(RDMA_STRANGER_INTERVAL_NS,
                 "%s: rejected a queue pair that does not belong to this job",
                 qp->device->port.name);
  qp->cm->api->reject(id, NULL, 0);
  rdmacm_destroy_id(qp->cm->api, id);
}

static int take_request(struct rdma_qp *qp, const struct seen *seen) {
  struct rdma_cm *cm = qp->cm;
  if (!cm->listener || cm->id || !is_peer(qp, seen, cm->tokens.request)) {
    reject(qp, seen->id);
    return 0;
  }
  cm->id = seen->id;
  rdmacm_destroy_id(cm->api, cm->listener);
  cm->listener = NULL;
  if (!is_on_device(qp, cm->id)) {
    return -ENODEV;
  }
  struct rdma_conn_param answer = parameters(qp, cm->tokens.answer);
  int error = move_to_ready(qp);
  if (!error && cm->api->accept(cm->id, &answer) != 0) {
    error = -errno;
  }
  return error ? failed(qp, "accept", error) : 0;
}

static int check_deadline(const struct rdma_qp *qp) {
  uint64_t times;
  struct rdma_cm *cm = qp->cm;
  if (cm->deadline_fd < 0) {
    return 0;
  }
  if (!cm->is_connected) {
    return read(cm->deadline_fd, &times, sizeof(times)) < 0 ? 0 : failed(qp, "accept", -ETIMEDOUT);
  }
  descriptor_close(cm->deadline_fd);
  cm->deadline_fd = -1;
  return 0;
}

/* ---- the dialling side ---- */

static void set_traffic_class(const struct rdma_qp *qp, int dscp) {
  uint8_t class = (uint8_t)rdma_qp_traffic_class(qp, dscp);
  if (class && qp->cm->api->set_option(qp->cm->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &class,
                                       sizeof(class)) != 0) {
    LOG_TRACE("%s: librdmacm sets no traffic class: %s", qp->device->port.name, strerror(errno));
  }
}

int rdma_cm_connect(struct rdma_qp *qp, const struct rdma_facts *peer,
                    const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                    const struct lane_tokens *tokens, int dscp) {
  struct sockaddr_storage source = *from, target = *to;
  int error = make(qp, peer, tokens);
  if (error) {
    return error;
  }
  struct rdma_cm *cm = qp->cm;
  cm->is_dialler = true;
  tcp_address_set_port(&source, 0);
  if (cm->api->create_id(cm->channel, &cm->id, NULL, RDMA_PS_TCP) != 0) {
    return failed(qp, "make an identifier", -errno);
  }
  set_traffic_class(qp, dscp);
  if (cm->api->resolve_addr(cm->id, (struct sockaddr *)&source, (struct sockaddr *)&target,
                            RDMA_CM_PHASE_MS) != 0) {
    return failed(qp, "resolve the peer's address", -errno);
  }
  return 0;
}

static int find_route(const struct rdma_qp *qp) {
  const struct rdma_cm *cm = qp->cm;
  if (!is_on_device(qp, cm->id)) {
    return -ENODEV;
  }
  return cm->api->resolve_route(cm->id, RDMA_CM_PHASE_MS) ? failed(qp, "find a route", -errno) : 0;
}

static int request(const struct rdma_qp *qp) {
  const struct rdma_cm *cm = qp->cm;
  struct rdma_conn_param asked = parameters(qp, cm->tokens.request);
  return cm->api->connect(cm->id, &asked) ? failed(qp, "connect", -errno) : 0;
}

/* must_establish: the queue pair must still be moved, and the peer be notified. */
static int take_answer(struct rdma_qp *qp, const struct seen *seen, bool must_establish) {
  struct rdma_cm *cm = qp->cm;
  if (!is_peer(qp, seen, cm->tokens.answer)) {
    LOG_INFO("%s: what answered for the peer's queue pair is not the peer", qp->device->port.name);
    return -EKEYREJECTED;
  }
  int error = must_establish ? move_to_ready(qp) : 0;
  if (!error && must_establish && cm->api->establish(cm->id) != 0) {
    error = -errno;
  }
  if (!error) {
    connected(qp);
  }
  return error ? failed(qp, "connect", error) : 0;
}

/* ---- events ---- */

static int event_failed(const struct rdma_qp *qp, const struct seen *seen) {
  const char *text = qp->cm->api->event_str(seen->type);
  LOG_AT(qp->cm->is_connected ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO, "%s: librdmacm: %s (%d)",
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
  struct rdma_cm *cm = qp->cm;
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
    if (!cm->is_dialler) {
      connected(qp);
    }
    return cm->is_connected ? 0 : take_answer(qp, seen, false); /* iWARP's only answer */
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
    seen->number = connection->qp_num;
    if (connection->private_data && connection->private_data_len >= LANE_TOKEN_BYTES) {
      memcpy(seen->token, connection->private_data, LANE_TOKEN_BYTES);
    }
  }
}

int rdma_cm_advance(struct rdma_qp *qp) {
  const struct rdma_cm *cm = qp->cm;
  struct rdma_cm_event *event;
  int error = 0;
  for (int i = 0; i < RDMA_CM_EVENTS_MOST && !error; i++) {
    if (cm->api->get_cm_event(cm->channel, &event) != 0) {
      error = errno == EAGAIN || errno == EINTR ? 0 : failed(qp, "report events", -errno);
      break;
    }
    struct seen seen;
    copy_event(event, &seen);
    cm->api->ack_cm_event(event);
    error = take(qp, &seen);
  }
  return error ? error : check_deadline(qp);
}
