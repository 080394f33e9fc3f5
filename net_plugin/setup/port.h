/* SPDX-License-Identifier: Apache-2.0 */
/* port: the one listening socket that a NIC has per engine.
 *
 * Owns: the socket and its pending peers (pending_peer.h), until port_close_all.  Threads: holder
 * of the engine lock. Blocks: never. Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_PORT_H
#define NET_PLUGIN_SETUP_PORT_H

#include <sys/socket.h>

#include "net_plugin/engine/engine.h"

/* The address on which the engine accepts lanes for this NIC; the socket is made on first use. */
int port_address(struct engine *engine, const struct nic *nic, struct sockaddr_storage *address);
void port_close_all(struct engine *engine);

#endif
