/* SPDX-License-Identifier: Apache-2.0 */
/* port: the one listening socket that a NIC has per engine, and the connections to it whose peers
 * have not proved yet that they belong to the job. These are few, cheap and short-lived, so that
 * scanners and strangers cost nothing.
 *
 *   HELLO --hello--> PROOF --proof--> acceptor.c has it
 *                             `-- an endpoint is made for it --> PROVED --it is, or not--> the same
 *   HELLO, PROOF --garbage, end, deadline, more peers than the port's share--> closed
 *   PROVED --the peer leaves, the port goes--> closed
 *
 * A peer has PENDING_PEER_NS for everything, however slowly it sends. The process has one budget of
 * pending peers: PENDING_PEERS_MAX, or less where it may open few descriptors. Each port has an
 * equal share, so that engines need not ask each other. Where a port has too many, one goes of the
 * network with the most (an IPv4 address, an IPv6 /64), there of the address with the most: the
 * oldest that has sent no hello, or the oldest. So one that floods evicts its own. Where
 * descriptors are short, one goes that has had its turn (port.c).
 *
 * Owns: its socket and those of its peers, until port_close_all.  Threads: holder of the engine
 * lock. Blocks: never. Fails: negative errno; without memory a peer is closed. */
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
/* Somebody has come: takes the socket over. */
void port_admit(struct port *port, int fd, const struct sockaddr_storage *from);
void port_close_all(struct engine *engine);

#endif
