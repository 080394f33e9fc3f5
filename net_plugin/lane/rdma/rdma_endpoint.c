/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_endpoint.h and endpoint.h. */
#include "net_plugin/lane/rdma/rdma_endpoint.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/log.h"
#include "net_plugin/lane/rdma/rdma_cm.h"
#include "net_plugin/lane/rdma/rdma_guard.h"
#include "net_plugin/lane/rdma/rdma_opener.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/link/wire.h"

_Static_assert(offsetof(struct rdma_qp, endpoint) == 0, "an endpoint is the beginning of its qp");

struct rdma_qp *rdma_endpoint_qp(struct endpoint *endpoint) {
  return (struct rdma_qp *)endpoint;
}

/* Once; what follows is mostly the same. */
static void log_refusal(const struct nic *nic, const char *why) {
  static atomic_flag has_logged = ATOMIC_FLAG_INIT;
  bool is_first = !atomic_flag_test_and_set(&has_logged);
  LOG_AT(is_first ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "no RDMA through %s, TCP is used: %s",
         nic->name, why);
}

/* ---- devices ---- */

/* NULL: none; *is_opening: the search goes on in the background. */
static struct rdma_device *take_device(const struct nic *nic, bool *is_opening) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_opener_take(nic, why);
  *is_opening = !device && !why[0];
  if (!device && why[0]) {
    log_refusal(nic, why);
  }
  return device;
}

void endpoint_wait(const struct nic *nics, unsigned count, bool is_encrypted) {
  if (!is_encrypted) {
    rdma_opener_wait(nics, count);
  }
}

unsigned endpoint_remote_keys(const struct nic *nics, unsigned count, bool is_encrypted) {
  bool is_possible = false;
  if (is_encrypted) {
    log_refusal(nics, "STRATUS_ENCRYPT is on, and RDMA devices do not encrypt");
    return 0;
  }
  for (unsigned i = 0; i < count && !is_possible; i++) {
    struct rdma_device *device = take_device(&nics[i], &is_possible);
    if (device) {
      is_possible = true;
      rdma_device_close(device);
    }
    is_possible = is_possible || rdma_device_may_come(&nics[i]);
  }
  return is_possible ? WIRE_REMOTE_KEYS : 0;
}

bool endpoint_has_device(const struct nic *nic) {
  bool is_opening;
  struct rdma_device *device = take_device(nic, &is_opening);
  if (device) {
    rdma_device_close(device);
  }
  return device != NULL;
}

void endpoint_stop_all(void) {
  rdma_opener_finish();
  rdma_guard_finish();
  rdma_reaper_finish();
  rdma_memory_release();
}

/* ---- one endpoint ---- */

struct endpoint *endpoint_new(const struct nic *nic, bool is_sender) {
  static atomic_flag has_logged = ATOMIC_FLAG_INIT;
  char why[RDMA_WHY_MAX];
  bool is_opening;
  struct rdma_device *device = take_device(nic, &is_opening);
  struct rdma_qp *qp = device ? rdma_qp_new(device, is_sender, why) : NULL;
  if (device && !qp) {
    log_refusal(nic, why);
  }
  if (qp && !atomic_flag_test_and_set(&has_logged)) {
    LOG_INFO("RDMA through %s: device %s, port %u", nic->name, qp->device->port.name,
             qp->device->port.port);
  }
  return qp ? &qp->endpoint : NULL;
}

void endpoint_describe(const struct endpoint *endpoint, struct lane_offer *offer) {
  struct rdma_facts facts;
  rdma_qp_facts((const struct rdma_qp *)endpoint, &facts);
  rdma_facts_encode(&facts, offer);
}

int rdma_endpoint_uses_cm(const struct rdma_qp *qp, const struct rdma_facts *peer, bool *uses_cm) {
  enum rdma_cm_wish ours = qp->device->port.cm, theirs = (enum rdma_cm_wish)peer->cm;
  *uses_cm = ours == RDMA_CM_MUST || theirs == RDMA_CM_MUST;
  if (*uses_cm && (ours == RDMA_CM_NEVER || theirs == RDMA_CM_NEVER)) {
    log_refusal(&qp->device->nic,
                "STRATUS_RDMA_CM is off on one side and the other needs librdmacm");
    return -EOPNOTSUPP;
  }
  return 0;
}

int endpoint_accept(struct endpoint *endpoint, const struct endpoint_peer *peer, uint16_t *port) {
  struct rdma_qp *qp = rdma_endpoint_qp(endpoint);
  struct rdma_facts facts;
  struct sockaddr_storage at = { 0 };
  socklen_t at_bytes = sizeof at;
  bool uses_cm;
  *port = 0;
  rdma_facts_decode(peer->offer, &facts);
  int error = rdma_endpoint_uses_cm(qp, &facts, &uses_cm);
  if (error || !uses_cm) {
    return error ? error : rdma_qp_connect(qp, &facts, peer->dscp);
  }
  if (getsockname(peer->fd, (struct sockaddr *)&at, &at_bytes) != 0) {
    return -errno;
  }
  return rdma_cm_listen(qp, &facts, &at, peer->tokens, port);
}

int endpoint_connect(struct endpoint *endpoint, const struct endpoint_peer *peer, uint16_t port) {
  struct rdma_qp *qp = rdma_endpoint_qp(endpoint);
  struct rdma_facts facts;
  struct sockaddr_storage from = { 0 }, to = { 0 };
  socklen_t from_bytes = sizeof from, to_bytes = sizeof to;
  rdma_facts_decode(peer->offer, &facts);
  if (port == 0) {
    return rdma_qp_connect(qp, &facts, peer->dscp);
  }
  if (getsockname(peer->fd, (struct sockaddr *)&from, &from_bytes) != 0 ||
      getpeername(peer->fd, (struct sockaddr *)&to, &to_bytes) != 0) {
    return -errno;
  }
  tcp_address_set_port(&to, port);
  int error = rdma_cm_connect(qp, &facts, &from, &to, peer->tokens, peer->dscp);
  return error ? error : -EINPROGRESS;
}

int endpoint_advance(struct endpoint *endpoint) {
  struct rdma_qp *qp = rdma_endpoint_qp(endpoint);
  int error = rdma_cm_advance(qp);
  return error ? error : rdma_cm_is_connected(qp->cm) ? 0 : -EINPROGRESS;
}

int endpoint_fd(const struct endpoint *endpoint) {
  return rdma_cm_event_fd(((const struct rdma_qp *)endpoint)->cm);
}

int endpoint_free(struct endpoint *endpoint) {
  return rdma_qp_free(rdma_endpoint_qp(endpoint));
}
