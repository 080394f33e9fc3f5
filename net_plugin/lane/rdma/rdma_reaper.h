/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_reaper: destroys queue pairs that are stopped, in a thread of its own.
 *
 * A driver may take long over it: it waits until no packet refers to the queue pair any more, which
 * for SoftRoCE on a link that went down was most of a second each. Who holds the engine lock must
 * not wait for that: other lanes have data to move.
 *
 * Owns: what it was given, until it is destroyed; a thread, while there is something to do.
 * Threads: any.  Blocks: rdma_reaper_take never, unless no thread can be had: then the caller does
 * the work; rdma_reaper_finish until all is done.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_REAPER_H
#define NET_PLUGIN_LANE_RDMA_RDMA_REAPER_H

#include "common/list.h"

/* Lives inside the thing that is to be destroyed. */
struct rdma_remains {
  struct list_node node;
  void (*destroy)(struct rdma_remains *remains);
};

void rdma_reaper_take(struct rdma_remains *remains);
/* Returns when everything that was taken is destroyed. */
void rdma_reaper_finish(void);

#endif
