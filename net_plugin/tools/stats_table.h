/* SPDX-License-Identifier: Apache-2.0 */
/* stats_table: prints the JSON statistics of a process as tables.
 * Owns: nothing.  Threads: main.  Blocks: never.  Fails: cannot; missing fields print as 0 or "-".
 */
#ifndef NET_PLUGIN_TOOLS_STATS_TABLE_H
#define NET_PLUGIN_TOOLS_STATS_TABLE_H

#include <jansson.h>
#include <stdbool.h>

/* before: an earlier document of the process, for rates; NULL: none. */
void stats_table_print(const json_t *process, const json_t *before, bool has_flows);

#endif
