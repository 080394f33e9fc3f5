/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_worker.h. */
#include "net_plugin/lane/rdma/rdma_worker.h"

#include <pthread.h>

#include "common/thread.h"

/* Covers all queues. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;

static void *serve(void *argument) {
  struct rdma_queue *queue = argument;
  struct list_node *node;
  pthread_mutex_lock(&lock);
  while ((node = list_pop_front(&queue->waiting))) {
    struct rdma_job *job = LIST_ENTRY(node, struct rdma_job, node);
    void (*run)(struct rdma_job *) = job->run; /* the owner may set the next one from here on */
    job->is_waiting = false;
    pthread_mutex_unlock(&lock);
    run(job);
    pthread_mutex_lock(&lock);
  }
  queue->is_running = false;
  pthread_cond_broadcast(&finished);
  pthread_mutex_unlock(&lock);
  return NULL;
}

bool rdma_worker_submit(struct rdma_queue *queue, struct rdma_job *job) {
  pthread_t thread;
  pthread_mutex_lock(&lock);
  job->is_waiting = true;
  list_push_back(&queue->waiting, &job->node);
  if (!queue->is_running && thread_start(&thread, serve, queue) == 0) {
    pthread_detach(thread);
    queue->is_running = true;
  }
  bool is_served = queue->is_running;
  pthread_mutex_unlock(&lock);
  return is_served;
}

void rdma_worker_keep(struct rdma_queue *queue, struct rdma_job *job) {
  pthread_mutex_lock(&lock);
  list_push_back(&queue->kept, &job->node);
  pthread_mutex_unlock(&lock);
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

void rdma_worker_finish(struct rdma_queue *queue) {
  struct list_node *node;
  pthread_mutex_lock(&lock);
  while (queue->is_running) {
    pthread_cond_wait(&finished, &lock);
  }
  while ((node = list_pop_front(&queue->kept))) {
    list_push_back(&queue->waiting, node);
  }
  queue->is_running = true; /* here: what waits for a thread */
  pthread_mutex_unlock(&lock);
  serve(queue);
}
