/* SPDX-License-Identifier: Apache-2.0 */
/* stats_print: prints the statistics of processes, which are JSON as observe/stats_json.c writes
 * it. Owns: nothing.  Threads: main.  Blocks: on the stream.  Fails: cannot; missing members print
 * as 0 or "-", or are left out. */
#ifndef NET_PLUGIN_TOOLS_STATS_PRINT_H
#define NET_PLUGIN_TOOLS_STATS_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The tables of a process. before: an earlier document of it, for rates; NULL: none. */
void stats_table_print(const json_t *process, const json_t *before, bool has_flows);

/* The text format of Prometheus; nothing of no process. */
void stats_prometheus_print(const json_t *processes, FILE *to);

#endif
