/* SPDX-License-Identifier: Apache-2.0 */
/* connector: the connecting side of connection set-up.
 *
 * NCCL calls connect again and again with the same handle until a connection comes out. What is in
 * progress meanwhile has a token, which is remembered in the last bytes of the handle: NCCL keeps
 * them for the caller. The token is random, and valid only with the listener's identity: the bytes
 * of a new handle come from the peer, and must not name another pending connect. An unknown token
 * starts a new one.
 *
 *   dialling --reply--> made --taken--> gone
 *   dialling --refused, unreachable--> waiting --backoff--> dialling
 *   any --deadline, refusal with a proof--> failed --taken--> gone
 *   any --NCCL does not call any more--> gone
 *
 * Owns: pending connects; each its dial, and the connection until it is taken.
 * Threads: NCCL's service thread; connector_drop_all: holder of the engine lock.  Blocks: for the
 * engine lock, microseconds, and for the file of the job secret, if there is one; the first call
 * with a handle also for RDMA devices that are being opened, up to 15 s (endpoint_wait).
 * Fails: negative errno, after a LOG_WARN that names the peer and says what to do. */
#ifndef NET_PLUGIN_SETUP_CONNECTOR_H
#define NET_PLUGIN_SETUP_CONNECTOR_H

#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/listener.h"

struct connection;
struct engine;

/* dscp: -1 as the system does, else 0..63. group_peers: see settings_of_group. 0 with *connection
 * NULL: not yet, call again. */
int connector_connect(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                      uint8_t handle[HANDLE_BYTES], struct connection **connection);

/* For an engine that stops. */
void connector_drop_all(struct engine *engine);

#endif
