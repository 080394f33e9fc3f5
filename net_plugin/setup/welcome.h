/* SPDX-License-Identifier: Apache-2.0 */
/* welcome: decides about a guest that presented a hello: a new connection for a listener, a lane
 * for a connection, or neither. Owns: nothing.  Threads: holder of the engine lock.  Blocks: never.
 * Fails: cannot; the guest then gets a refusal and is closed. */
#ifndef NET_PLUGIN_SETUP_WELCOME_H
#define NET_PLUGIN_SETUP_WELCOME_H

#include <sys/socket.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/handshake.h"

/* Sends the reply and hands the socket on, or closes it. nic: where the guest arrived. */
void welcome_guest(struct engine *engine, const struct nic *nic, const struct hello *hello, int fd,
                   const struct sockaddr_storage *from);
/* The guest runs another wire version: tells it ours, and the user both. Closes the socket. */
void welcome_other_version(const struct nic *nic, uint16_t wire_version, const char *version,
                           int fd, const struct sockaddr_storage *from);

#endif
