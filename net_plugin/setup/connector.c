/* SPDX-License-Identifier: Apache-2.0 */
/* See connector.h. */
#include "net_plugin/setup/connector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "common/check_event.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/version.h"
#include "net_plugin/setup/pending_connect.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/setup.h"

/* Handles of NCCL's own transports begin with a socket address (net_socket.cc, net_ib/connect.cc).
 */
static const char *foreign_address(const uint8_t handle[HANDLE_BYTES],
                                   char text[INET6_ADDRSTRLEN]) {
  struct sockaddr_storage address;
  memcpy(&address, handle, sizeof address < HANDLE_BYTES ? sizeof address : HANDLE_BYTES);
  if (address.ss_family == AF_INET) {
    return inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, text, INET6_ADDRSTRLEN);
  }
  if (address.ss_family == AF_INET6) {
    return inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address)->sin6_addr, text,
                     INET6_ADDRSTRLEN);
  }
  return "of unknown address";
}

static int start(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                 uint8_t handle[HANDLE_BYTES]) {
  struct peering_route route = { .nic_count = count };
  memcpy(route.nics, nics, count * sizeof *nics);
  int error = handle_decode(handle, &route.remote);
  if (error == -EPROTONOSUPPORT) {
    LOG_WARN("the peer runs another stratus release (wire version %u), this host %s (wire version "
             "%u). Install the same release on every host",
             route.remote.wire_version, STRATUS_VERSION, HANDSHAKE_WIRE_VERSION);
  } else if (error) {
    char text[INET6_ADDRSTRLEN];
    const char *address = foreign_address(handle, text);
    check_event_send(CHECK_NOT_PEER, address);
    LOG_WARN(
        "the peer's NCCL (host %s) does not use stratus: probably its NCCL could not load the "
        "plugin and "
        "fell back silently. Set the same NCCL_NET_PLUGIN on every host and look for \"stratus\" "
        "in each host's NCCL_DEBUG=INFO log. Or its NCCL sets up other channels than this one "
        "(\"Message truncated\" there): use the same NCCL_* variables and the same profile on "
        "every host; stratus-tune verify compares hosts",
        address);
  }
  uint64_t token = 0;
  setup_start();
  if (!error) {
    error = protection_check();
  }
  if (!error) {
    peering_route_find_paths(&route);
    error = pending_connect_start(&route, dscp, group_peers, &token);
  }
  hash_wipe(route.remote.secret, AUTH_SECRET_BYTES);
  handle_set_pending(handle, token);
  return error;
}

int connector_connect(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                      uint8_t handle[HANDLE_BYTES], struct connection **connection) {
  bool is_known;
  int error = pending_connect_take(handle_pending(handle), handle + HANDLE_LISTENER_AT, &is_known,
                                   connection);
  if (!is_known) {
    error = start(nics, count, dscp, group_peers, handle);
  } else if (error || *connection) {
    handle_set_pending(handle, 0);
  }
  return error;
}
