/* SPDX-License-Identifier: Apache-2.0 */
/* stats_json: the statistics of a process at one moment, as JSON, piece by piece:
 *
 *   stats_json_begin
 *   for each connection: stats_json_connection; for each of its flows stats_json_flow;
 *     stats_json_connection_end
 *   stats_json_end, with the NICs: after the connections, so that their totals include these
 *
 * Owns: nothing.  Threads: the caller's.  Blocks: never.  Fails: as the file does. */
#ifndef NET_PLUGIN_OBSERVE_STATS_JSON_H
#define NET_PLUGIN_OBSERVE_STATS_JSON_H

#include <stdio.h>

#include "net_plugin/connection/connection_snapshot.h"
#include "net_plugin/policy/policy_shared.h"

struct stats_process {
  int pid;
  const char *id, *host, *rank; /* rank: from the launcher's environment; empty: unknown */
  uint64_t uptime_ns;           /* since the first NIC was used */
};
void stats_json_begin(FILE *to, const struct stats_process *process);

/* Of the connection's engine. */
struct stats_engine {
  unsigned index; /* among those of its NIC */
  bool is_polled;
  struct compression compression;
};
void stats_json_connection(FILE *to, const struct connection_snapshot *seen,
                           const struct stats_engine *engine, uint64_t now_ns, bool is_first);
void stats_json_flow(FILE *to, const struct lane_snapshot *seen, bool is_first);
void stats_json_connection_end(FILE *to);

void stats_json_end(FILE *to, bool is_truncated);

#endif
