/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: this process's place among those that mpirun, srun or torchrun started.
 * Owns: nothing.  Threads: the main thread.  Blocks: never.  Fails: false if nothing of the kind
 * started it, or its variables make no sense. */
#ifndef NET_PLUGIN_TOOLS_PROBE_LAUNCHER_H
#define NET_PLUGIN_TOOLS_PROBE_LAUNCHER_H

#include <stdbool.h>

struct launcher_place {
  unsigned rank, size;
  unsigned local_rank; /* on this host; 0 where the launcher does not tell */
};
bool launcher_find(struct launcher_place *place);

#endif
