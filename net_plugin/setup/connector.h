/* SPDX-License-Identifier: Apache-2.0 */
/* connector: the connecting side of connection set-up.
 *
 * NCCL calls connect again and again with the same handle until a connection comes out; what is
 * in progress meanwhile is remembered in the last bytes of the handle, which NCCL keeps for the
 * caller.
 *
 * Threads: NCCL's service thread.  Blocks: for the engine lock, microseconds, and for the
 * file of the job secret, if there is one; the first call with a handle also for RDMA devices that
 * are being opened, up to 15 s (endpoint_wait).
 * Fails: negative errno, after a LOG_WARN that names the peer and says what to do. */
#ifndef NET_PLUGIN_SETUP_CONNECTOR_H
#define NET_PLUGIN_SETUP_CONNECTOR_H

#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/listener.h"

struct connection;

/* dscp: -1 as the system does, else 0..63. group_peers: see settings_of_group. 0 with *connection
 * NULL: not yet, call again. */
int connector_connect(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                      uint8_t handle[HANDLE_BYTES], struct connection **connection);

#endif
