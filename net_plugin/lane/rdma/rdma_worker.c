/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_worker.h. */
#include "net_plugin/lane/rdma/rdma_worker.h"

#include <pthread.h>

#include "common/thread.h"

/* More NICs than a host has for NCCL; those with the same place share queues. */
enum { NICS = 16 };
/* For queue pairs, of each NIC: as many as it may have engines by itself (PROGRESS_ENGINES_MAX),
 * which made them at once before there were workers. */
enum { MAKERS = 4 };
enum { QUEUES = RDMA_QUEUE_OPEN + NICS + NICS * MAKERS };

struct queue {
  struct list waiting, refused;
  bool is_running; /* a thread is at work, and checks the list before it ends */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Below: covered by the lock. */
static struct queue queues[QUEUES];
static unsigned turn; /* of the makers */

static void make_queues(void) {
  for (unsigned i = 0; i < QUEUES; i++) {
    list_init(&queues[i].waiting);
    list_init(&queues[i].refused);
  }
}

static struct queue *find_queue(enum rdma_queue kind, const struct nic *nic) {
  unsigned of_nic = nic ? nic->index % NICS : 0;
  if (kind == RDMA_QUEUE_MAKE) {
    return &queues[RDMA_QUEUE_OPEN + NICS + of_nic * MAKERS + turn++ % MAKERS];
  }
  return &queues[(unsigned)kind + of_nic];
}

static void *serve(void *argument) {
  struct queue *queue = argument;
  struct list_node *node;
  pthread_mutex_lock(&lock);
  while ((node = list_pop_front(&queue->waiting))) {
    struct rdma_job *job = LIST_ENTRY(node, struct rdma_job, node);
    bool (*run)(struct rdma_job *) = job->run; /* the owner may set the next one from here on */
    job->is_waiting = false;
    pthread_mutex_unlock(&lock);
    bool is_done = run(job);
    pthread_mutex_lock(&lock);
    if (!is_done) {
      list_push_back(&queue->refused, &job->node);
    }
  }
  queue->is_running = false;
  pthread_cond_broadcast(&finished);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* With the lock held, as the next two. */
static bool start_serving(struct queue *queue) {
  pthread_t thread;
  if (!queue->is_running && thread_start(&thread, serve, queue) == 0) {
    pthread_detach(thread);
    queue->is_running = true;
  }
  return queue->is_running;
}

static void push(struct queue *queue, struct rdma_job *job) {
  job->is_waiting = true;
  list_push_back(&queue->waiting, &job->node);
}

static void try_refused_again(struct queue *queue) {
  struct list_node *node;
  while ((node = list_pop_front(&queue->refused))) {
    push(queue, LIST_ENTRY(node, struct rdma_job, node));
  }
}

bool rdma_worker_submit(enum rdma_queue kind, const struct nic *nic, struct rdma_job *job) {
  pthread_once(&once, make_queues);
  pthread_mutex_lock(&lock);
  struct queue *queue = find_queue(kind, nic);
  try_refused_again(queue);
  push(queue, job);
  bool is_served = start_serving(queue);
  pthread_mutex_unlock(&lock);
  return is_served;
}

bool rdma_worker_take_back(struct rdma_job *job) {
  pthread_mutex_lock(&lock);
  bool is_back = job->is_waiting;
  if (is_back) {
    job->is_waiting = false;
    list_remove(&job->node);
  }
  pthread_mutex_unlock(&lock);
  return is_back;
}

/* Waits for its thread, or does what is left where there is none. With the lock held, which is
 * given up meanwhile. False: there was nothing. */
static bool finish_queue(struct queue *queue) {
  if (queue->is_running) {
    pthread_cond_wait(&finished, &lock);
    return true;
  }
  if (list_is_empty(&queue->waiting)) {
    return false;
  }
  queue->is_running = true;
  pthread_mutex_unlock(&lock);
  serve(queue);
  pthread_mutex_lock(&lock);
  return true;
}

/* Until nothing waits: jobs of one queue may bring jobs of another. */
static void finish_all(void) {
  bool has_waited = true;
  while (has_waited) {
    has_waited = false;
    for (unsigned i = 0; i < QUEUES; i++) {
      has_waited |= finish_queue(&queues[i]);
    }
  }
}

void rdma_worker_finish(void) {
  pthread_once(&once, make_queues);
  pthread_mutex_lock(&lock);
  finish_all();
  for (unsigned i = 0; i < QUEUES; i++) {
    try_refused_again(&queues[i]);
  }
  finish_all();
  pthread_mutex_unlock(&lock);
}
