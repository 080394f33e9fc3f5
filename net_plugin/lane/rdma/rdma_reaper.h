/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_reaper: destroys queue pairs that are stopped, in a thread of its own.
 *
 * A driver may take long over it: it waits until no packet refers to the queue pair any more, which
 * for SoftRoCE on a link that went down was most of a second each. Who holds the engine lock must
 * not wait for that: other lanes have data to move.
 *
 * What a device does not give up is tried again when the next one comes, and by finish.
 *
 * Owns: what it was given, until it is destroyed; a thread, while there is something to do.
 * Threads: any.  Blocks: rdma_reaper_take never, unless no thread can be had: then the caller does
 * the work; rdma_reaper_finish until all is done.  Fails: what is refused to the end stays. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_REAPER_H
#define NET_PLUGIN_LANE_RDMA_RDMA_REAPER_H

#include <stdbool.h>

#include "common/list.h"

/* Lives inside the thing that is to be destroyed. */
struct rdma_remains {
  struct list_node node;
  bool (*destroy)(struct rdma_remains *remains); /* false: refused, it must be called again */
};

void rdma_reaper_take(struct rdma_remains *remains);
/* Returns when everything that was taken is destroyed, or was refused once more. */
void rdma_reaper_finish(void);

#endif
