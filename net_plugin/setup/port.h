/* SPDX-License-Identifier: Apache-2.0 */
/* port: the one listening socket that a NIC has per process, and the guests on it: connections that
 * have not presented a valid hello yet. Guests are few, cheap and short-lived, so that scanners and
 * strangers cost nothing.
 *
 * Owns: the socket and its guests, until port_close_all.  Threads: holder of the engine lock.
 * Blocks: never. Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_PORT_H
#define NET_PLUGIN_SETUP_PORT_H

#include <sys/socket.h>

#include "net_plugin/engine/engine.h"

/* Guests beyond this many push out the oldest. */
#define PORT_MAX_GUESTS 512

/* The address on which the engine accepts lanes for this NIC; the socket is made on first use. */
int port_address(struct engine *engine, const struct nic *nic, struct sockaddr_storage *address);
void port_close_all(struct engine *engine);

#endif
