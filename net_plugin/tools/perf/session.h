/* SPDX-License-Identifier: Apache-2.0 */
/* session: runs a plan; client and server run the same code.
 * Owns: the connections, which end with the process or with session_run.  Threads: the main thread.
 * Blocks: as driver.h says.  Fails: with a message; the other side gets the message. */
#ifndef NET_PLUGIN_TOOLS_PERF_SESSION_H
#define NET_PLUGIN_TOOLS_PERF_SESSION_H

#include <jansson.h>
#include <stdbool.h>

#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/control_channel.h"

/* Loads the plugin, before the other side is connected. */
int session_open(const struct plan *plan, bool is_client);

/* Runs all rounds. The client gets the report. */
int session_run(struct control_channel *channel, json_t **report);

#endif
