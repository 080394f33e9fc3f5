/* SPDX-License-Identifier: Apache-2.0 */
/* listener: setup.h's listeners, and the one listening socket, the port, that a NIC has per engine
 * for all of them. Who comes there is the acceptor's.
 *
 * The process has one budget of pending peers: PENDING_PEERS_MAX, or less where it may open few
 * descriptors. Each port has an equal share, so that engines need not ask each other. Where
 * descriptors are short, a peer goes that has had its turn.
 *
 * Owns: ports, until setup_stop.  Threads: holder of the engine lock.  Blocks: never.  Fails: there
 * is no address. */
#ifndef NET_PLUGIN_SETUP_LISTENER_H
#define NET_PLUGIN_SETUP_LISTENER_H

#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/handshake.h"

/* The address at which others reach this process on the NIC, which may only dial: the NIC's, or the
 * one that is advertised for it, with the port's number. Zeros: none; so where STRATUS_PORT_RANGE
 * keeps the ports for those who listen. */
void listener_for_hello(struct engine *engine, const struct nic *nic, struct wire_address *listens);

/* For setup_stop, with the engine's lock: those that NCCL has not closed; what peers dial. */
void listener_drop_all(struct engine *engine);
void listener_close_ports(struct engine *engine);

#endif
