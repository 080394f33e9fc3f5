/* SPDX-License-Identifier: Apache-2.0 */
/* listener: the accepting side of connection set-up.
 *
 * Every NIC in use has one listening socket per engine that listeners were dealt to. A listener is
 * a random identity and a 128-bit random secret registered there: NCCL passes both to the peer
 * inside the 128-byte handle, and a connection is accepted once a lane has proved to know the
 * secret. Port scanners, late and foreign connections never reach a listener.
 *
 * Owns: its secret until listener_close, and accepted connections until they are handed out.
 * Threads: NCCL's service thread.  Blocks: for the engine lock, microseconds; listener_open also
 * for the file of the job secret, if there is one, and for RDMA devices that are being opened, up
 * to 15 s (endpoint_wait).
 * Fails: negative errno, after a LOG_WARN that says what to do. */
#ifndef NET_PLUGIN_SETUP_LISTENER_H
#define NET_PLUGIN_SETUP_LISTENER_H

#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/handshake.h"

#define HANDLE_BYTES 128 /* NCCL_NET_HANDLE_MAXSIZE */

struct connection;
struct listener;

/* count NICs make one fused device (1 in the common case). The handle is written whole. */
int listener_open(const struct nic *nics, unsigned count, uint8_t handle[HANDLE_BYTES],
                  struct listener **listener);
/* 0 with *connection NULL: not yet, ask again. */
int listener_accept(struct listener *listener, struct connection **connection);
/* NULL is nothing. */
void listener_close(struct listener *listener);

#endif
