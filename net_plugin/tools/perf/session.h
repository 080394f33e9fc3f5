/* SPDX-License-Identifier: Apache-2.0 */
/* session: runs a plan between two processes, for perf and each pair of a probe: the client opens
 * one and runs it, the server serves it. One in a process.
 * Owns: the connections, which end with the process or with the session.  Threads: the main thread.
 * Blocks: as driver.h says.  Fails: with a message; the other side gets the message. */
#ifndef NET_PLUGIN_TOOLS_PERF_SESSION_H
#define NET_PLUGIN_TOOLS_PERF_SESSION_H

#include <jansson.h>

#include "net_plugin/tools/perf/plan.h"

/* Loads the plugin, before the other side is connected. */
int session_open(const struct plan *plan);

/* Runs all rounds with who serves at the other end of the socket, which it closes. */
int session_run(int fd, const char *peer, json_t **report);

/* Runs the plan that `peer` sends, with this side's own plugin and data (NULL: the defaults):
 * nothing that a client sends names a file. Closes the socket. */
int session_serve(int fd, const char *peer, const char *plugin, const char *data);

#endif
