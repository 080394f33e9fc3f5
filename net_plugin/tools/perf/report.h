/* SPDX-License-Identifier: Apache-2.0 */
/* report: the results of both sides as JSON and tables.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: if stdout does.  Fails: NULL without memory; printing with CLI_FAILED. */
#ifndef NET_PLUGIN_TOOLS_PERF_REPORT_H
#define NET_PLUGIN_TOOLS_PERF_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "net_plugin/tools/perf/plan.h"

/* One message size. Takes the references to both sides (window_to_json). */
json_t *report_round(uint64_t bytes, uint64_t wrong, json_t *client, json_t *server);

/* The whole document. Takes the references to the description of both ends, the rounds, and the CPU
 * time of both while idle (NULL: not measured). connect_s: time to make all connections. */
json_t *report_all(const struct plan *plan, json_t *client, json_t *server, double connect_s,
                   json_t *rounds, json_t *idle);

/* CLI_FAILED, with a message, if a message had wrong contents. */
int report_judge(const json_t *report);

void report_print(const struct plan *plan, const json_t *report);

#endif
