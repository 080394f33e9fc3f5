/* SPDX-License-Identifier: Apache-2.0 */
/* stats_table: what a process told in JSON, as tables for people.
 * Owns: nothing.  Threads: main.  Blocks: never.  Fails: cannot; what is missing shows as 0 or
 * "-". */
#ifndef NET_PLUGIN_TOOLS_STATS_TABLE_H
#define NET_PLUGIN_TOOLS_STATS_TABLE_H

#include <jansson.h>
#include <stdbool.h>

/* before: what the same process told earlier, for rates; NULL: none. */
void stats_table_print(const json_t *process, const json_t *before, bool has_flows);

#endif
