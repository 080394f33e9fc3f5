/* SPDX-License-Identifier: Apache-2.0 */
/* port: the one listening socket that a NIC has per engine.
 *
 * Owns: the socket and its pending peers (pending_peer.h), until port_close_all.  Threads: holder
 * of the engine lock. Blocks: never. Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_PORT_H
#define NET_PLUGIN_SETUP_PORT_H

#include <sys/socket.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/handshake.h"

/* The address at which others reach the engine's socket for this NIC, which is made on first use:
 * the NIC's, or the one that is advertised for it, with the socket's port. */
int port_address(struct engine *engine, const struct nic *nic, struct sockaddr_storage *address);
/* The same for a hello, for a process that only dials, too; zeros where STRATUS_PORT_RANGE
 * keeps the ports for those who listen. */
void port_for_hello(struct engine *engine, const struct nic *nic, struct wire_address *listens);
void port_close_all(struct engine *engine);

#endif
