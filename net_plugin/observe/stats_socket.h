/* SPDX-License-Identifier: Apache-2.0 */
/* stats_socket: a unix socket that serves the statistics of a process.
 *
 * A client receives the document, says nothing, and is disconnected, after STATS_CLIENT_NS in any
 * case; others wait in the listen queue. The engine serves it between its other work, in bounded
 * steps, so that no engine is paused for long, however many connections there are.
 *
 * Owns: the socket and its file, while there are engines.  Threads: as stated.  Blocks: on the
 * file system in stats_socket_open.  Fails: stats_socket_open returns a negative errno; a client
 * that cannot be served is disconnected. */
#ifndef NET_PLUGIN_OBSERVE_STATS_SOCKET_H
#define NET_PLUGIN_OBSERVE_STATS_SOCKET_H

#include "net_plugin/engine/engine.h"

/* Before the first engine is made, which opens it; without a socket there are no statistics, and
 * one LOG_INFO says why. When the last engine of a NIC goes, the log has its counts. */
void stats_socket_start(void);
/* With the lock of the engine held. -EALREADY: another engine has the socket. *where becomes the
 * path, also after an error; it is valid as long as the process. */
int stats_socket_open(struct engine *engine, const char **where);

#endif
