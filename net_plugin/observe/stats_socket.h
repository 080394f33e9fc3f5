/* SPDX-License-Identifier: Apache-2.0 */
/* stats_socket: a unix socket where a process tells how it is doing.
 *
 * A client sends "json" or "prometheus" and a newline, gets the document, and is hung up on. The
 * engine that serves it does so between its other work; there is no thread. A client gets
 * STATS_CLIENT_NS for everything, so one that never reads keeps a place for that long and no more;
 * while all places are taken, others wait in the kernel's queue.
 *
 * Owns: the socket and its file, until stats_socket_close.  Threads: as stated.  Blocks: on the
 * file system in stats_socket_open.  Fails: stats_socket_open returns a negative errno; a client
 * that cannot be served is hung up on. */
#ifndef NET_PLUGIN_OBSERVE_STATS_SOCKET_H
#define NET_PLUGIN_OBSERVE_STATS_SOCKET_H

#include "common/clock.h"
#include "net_plugin/engine/engine.h"

#define STATS_CLIENTS_MAX 8
#define STATS_CLIENT_NS (5 * NS_PER_S)

/* Both with the lock of the engine held, which is the same one. -EALREADY: there is a socket. The
 * place is left in *where, also after an error: it lives as long as the process. */
int stats_socket_open(struct engine *engine, const char **where);
/* Does nothing if another engine serves it. */
void stats_socket_close(struct engine *engine);

#endif
