/* SPDX-License-Identifier: Apache-2.0 */
/* stats_progress: joins what the processes of a job tell of their communicators: which rank has not
 * entered the collective that others are in. Owns: nothing.  Threads: main.  Blocks: on stdout.
 * Fails: cannot; what is no document of a process is left out. */
#ifndef NET_PLUGIN_TOOLS_STATS_PROGRESS_H
#define NET_PLUGIN_TOOLS_STATS_PROGRESS_H

#include <jansson.h>

/* A paragraph for each communicator with ranks that are behind, or not among these processes. */
void stats_progress_print(const json_t *processes);

#endif
