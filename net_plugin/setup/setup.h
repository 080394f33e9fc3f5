/* SPDX-License-Identifier: Apache-2.0 */
/* setup: how connections are made: all that the layers above see of this directory.
 *
 * Every NIC in use has one listening socket per engine that listeners were dealt to. A listener is
 * a random identity and a 128-bit random secret registered there: NCCL passes both to the peer
 * inside the 128-byte handle, and a connection is accepted once a lane has proved to know the
 * secret. Port scanners, late and foreign connections never reach a listener.
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
 * Owns: a listener's secret until listener_close, pending connects, and connections until they are
 * handed out.  Threads: NCCL's service thread; setup_stop: any.  Blocks: for the engine lock,
 * microseconds; listener_open and connector_connect also for the file of the job secret, if there
 * is one, and, at first, for RDMA devices that are being opened, up to 15 s (endpoint_wait);
 * setup_stop up to about two seconds for connections that are still closing.
 * Fails: negative errno, after a LOG_WARN that names the peer and says what to do. */
#ifndef NET_PLUGIN_SETUP_SETUP_H
#define NET_PLUGIN_SETUP_SETUP_H

#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/handshake.h"

struct connection;
struct engine;
struct listener;

/* count NICs make one fused device (1 in the common case). The handle is written whole. */
int listener_open(const struct nic *nics, unsigned count, uint8_t handle[HANDLE_BYTES],
                  struct listener **listener);
/* 0 with *connection NULL: not yet, ask again. */
int listener_accept(struct listener *listener, struct connection **connection);
/* NULL is nothing. */
void listener_close(struct listener *listener);

/* dscp: -1 as the system does, else 0..63. group_peers: see settings_of_group. 0 with *connection
 * NULL: not yet, call again. */
int connector_connect(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                      uint8_t handle[HANDLE_BYTES], struct connection **connection);

/* For the last finalize: ends listeners, connections, engines and their threads. Everything can
 * start again afterwards. */
void setup_stop(void);

#endif
