/* SPDX-License-Identifier: Apache-2.0 */
/* session: one client and one server going through a plan together; both run the same code.
 * Owns: the plugin's or the plain connections, until session_close.  Threads: the main thread.
 * Blocks: as driver.h and plain.h say.  Fails: with a message; the other side is told. */
#ifndef NET_PLUGIN_TOOLS_PERF_SESSION_H
#define NET_PLUGIN_TOOLS_PERF_SESSION_H

#include <jansson.h>
#include <stdbool.h>

#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/control_channel.h"

/* Loads what the plan asks for, before there is another side to talk to. */
int session_open(const struct plan *plan, bool is_client);

/* All rounds. The client gets the report. */
int session_run(struct control_channel *channel, json_t **report);

#endif
