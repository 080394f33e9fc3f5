/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_worker: calls drivers in threads of its own, so that no holder of an engine lock waits for
 * one. A driver takes a millisecond to make a queue pair, as long as there is memory to register it
 * to open a device, and until no packet refers to a queue pair any more to destroy it: for SoftRoCE
 * on a link that went down that was most of a second.
 *
 * Jobs of one queue are done one after the other, each queue by a thread of its own, which is there
 * while the queue has jobs: a driver that hangs holds up its own queue. What is over has a queue
 * for itself, since a driver may not open a device again before the old one is closed.
 *
 * Owns: its threads, and jobs that were submitted until they run.  Threads: any.
 * Blocks: rdma_worker_finish until all is done; the others never.
 * Fails: without a thread jobs wait for the next one of their queue, or for finish. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_WORKER_H
#define NET_PLUGIN_LANE_RDMA_RDMA_WORKER_H

#include <stdbool.h>

#include "common/list.h"
#include "net_plugin/lane/nic.h"

enum rdma_queue {
  RDMA_QUEUE_DESTROY, /* queue pairs */
  RDMA_QUEUE_LINKS,   /* the memory of links is registered and given up */
  RDMA_QUEUE_OPEN,    /* devices are searched; of each NIC: rdma_worker_queue_of */
  RDMA_QUEUE_MAKE,    /* queue pairs are made and connected; of each NIC, a few in turn */
};

/* Lives inside the thing that it is about. */
struct rdma_job {
  struct list_node node;
  /* Without locks; may free the job. False: the device refused, and the job runs again when the
   * next one comes, and in finish. */
  bool (*run)(struct rdma_job *job);
  bool is_waiting; /* rdma_worker.c's */
};

/* nic: whose queue, where each NIC has one; else NULL. False: no thread can be had. */
bool rdma_worker_submit(enum rdma_queue queue, const struct nic *nic, struct rdma_job *job);
/* True: it had not begun, and never will. */
bool rdma_worker_take_back(struct rdma_job *job);
/* Returns when every job is done, or was refused once more. */
void rdma_worker_finish(void);

#endif
