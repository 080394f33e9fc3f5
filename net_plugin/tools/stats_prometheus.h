/* SPDX-License-Identifier: Apache-2.0 */
/* stats_prometheus: prints the statistics of processes in the text format of Prometheus.
 * Owns: nothing.  Threads: main.  Blocks: on the stream.  Fails: never. */
#ifndef NET_PLUGIN_TOOLS_STATS_PROMETHEUS_H
#define NET_PLUGIN_TOOLS_STATS_PROMETHEUS_H

#include <jansson.h>
#include <stdio.h>

/* An array of documents, as stats_json.c writes them. Nothing is printed of none. */
void stats_prometheus_print(const json_t *processes, FILE *to);

#endif
