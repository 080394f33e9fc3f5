/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: one rank of each host of a launcher's job, which tell each other through rank 0.
 * Owns: the connections, from ranks_open to ranks_close.  Threads: the main thread.
 * Blocks: ranks_open for PROBE_GATHER_NS, ranks_gather for PROBE_STEP_NS until all have come.
 * Fails: with a message and an exit status (common/cli.h); the others get the message. */
#ifndef NET_PLUGIN_TOOLS_PROBE_RANKS_H
#define NET_PLUGIN_TOOLS_PROBE_RANKS_H

#include "common/launcher.h"
#include "net_plugin/tools/control_channel.h"
#include "net_plugin/tools/probe/results.h"

struct ranks {
  unsigned count; /* that take part; 0: this one does not */
  unsigned own;   /* place of this one among them, in the order of ranks */
  struct control_channel channels[PROBE_HOSTS_MAX]; /* at place 0 to each, else [0] to that */
};

/* `root`: HOST[:PORT] of rank 0; NULL: as the launcher says. To be closed even after a failure. */
int ranks_open(struct ranks *ranks, const struct launcher_place *place, const char *root);
/* What each has given, by place. Takes the reference to `mine`. */
int ranks_gather(struct ranks *ranks, json_t *mine, json_t **all);
/* `status` of what was done; else than CLI_OK the others end with it. */
void ranks_close(struct ranks *ranks, int status);

#endif
