/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_worker: calls drivers in threads of its own, so that no holder of an engine lock waits for
 * one. A driver takes a millisecond to make a queue pair, as long as there is memory to register it
 * to open a device, and until no packet refers to a queue pair any more to destroy it: for SoftRoCE
 * on a link that went down that was most of a second.
 *
 * Each device has a queue (rdma_device.h), and a thread that is there while the queue has jobs or a
 * descriptor: the jobs are done one after the other, and what the descriptor has is handled between
 * them. A driver that hangs holds up its own device.
 *
 * Owns: its threads, and jobs that were submitted until they run.  Threads: any.
 * Blocks: rdma_worker_finish until all is done; the others never.
 * Fails: without a thread jobs wait for the next one of their queue, or for finish. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_WORKER_H
#define NET_PLUGIN_LANE_RDMA_RDMA_WORKER_H

#include <stdbool.h>

#include "common/list.h"

struct rdma_queue {
  struct list waiting, kept; /* empty lists */
  /* Set by its jobs: called while the descriptor is readable. */
  int fd; /* -1: none */
  void (*readable)(struct rdma_queue *queue);
  /* rdma_worker.c's */
  int wake_fd; /* an eventfd, until finish */
  bool is_running, is_ending;
};

/* A member of what it is about. */
struct rdma_job {
  struct list_node node;
  void (*run)(struct rdma_job *job); /* without locks; may free the job */
  bool is_waiting;                   /* rdma_worker.c's */
};

void rdma_worker_init(struct rdma_queue *queue);
/* False: no thread can be had. */
bool rdma_worker_submit(struct rdma_queue *queue, struct rdma_job *job);
/* The device refuses: the job is done again in finish. */
void rdma_worker_keep(struct rdma_queue *queue, struct rdma_job *job);
/* True: it had not begun, and never will. */
bool rdma_worker_take_back(struct rdma_job *job);
/* Returns when every job of the queue is done, or was kept once more, and no thread is left. */
void rdma_worker_finish(struct rdma_queue *queue);

#endif
