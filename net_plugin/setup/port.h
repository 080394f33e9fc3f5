/* SPDX-License-Identifier: Apache-2.0 */
/* port: the one listening socket that a NIC has per engine. Who comes there is the acceptor's.
 *
 * The process has one budget of pending peers: PENDING_PEERS_MAX, or less where it may open few
 * descriptors. Each port has an equal share, so that engines need not ask each other. Where
 * descriptors are short, a peer goes that has had its turn (port.c).
 *
 * Owns: its socket, until port_close_all.  Threads: holder of the engine lock. Blocks: never.
 * Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_PORT_H
#define NET_PLUGIN_SETUP_PORT_H

#include <sys/socket.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/handshake.h"

struct port;

/* The port of this engine for this NIC, which is made on first use. */
int port_get(struct engine *engine, const struct nic *nic, struct port **port);
/* The address at which others reach it: the NIC's, or the one that is advertised for it, with the
 * socket's port. */
struct sockaddr_storage port_address(const struct port *port);
/* The same for a hello, for a process that only dials, too; zeros where STRATUS_PORT_RANGE
 * keeps the ports for those who listen. */
void port_for_hello(struct engine *engine, const struct nic *nic, struct wire_address *listens);
void port_close_all(struct engine *engine);

#endif
