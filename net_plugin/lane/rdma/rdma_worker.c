/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_worker.h. */
#include "net_plugin/lane/rdma/rdma_worker.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "common/descriptor.h"
#include "common/thread.h"

/* Covers all queues. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;

void rdma_worker_init(struct rdma_queue *queue) {
  list_init(&queue->waiting);
  list_init(&queue->kept);
  queue->fd = queue->wake_fd = -1;
}

/* All jobs, with the lock held. */
static void run_jobs(struct rdma_queue *queue) {
  struct list_node *node;
  while ((node = list_pop_front(&queue->waiting))) {
    struct rdma_job *job = LIST_ENTRY(node, struct rdma_job, node);
    void (*run)(struct rdma_job *) = job->run; /* the owner may set the next one from here on */
    job->is_waiting = false;
    pthread_mutex_unlock(&lock);
    run(job);
    pthread_mutex_lock(&lock);
  }
}

/* Until there is a job, or the descriptor has something. */
static void wait_for_news(struct rdma_queue *queue) {
  struct pollfd sources[] = { { .fd = queue->wake_fd, .events = POLLIN },
                              { .fd = queue->fd, .events = POLLIN } };
  eventfd_t count;
  if (poll(sources, 2, -1) > 0 && sources[1].revents) {
    queue->readable(queue);
  }
  if (sources[0].revents) {
    eventfd_read(queue->wake_fd, &count);
  }
}

static void *serve(void *argument) {
  struct rdma_queue *queue = argument;
  pthread_mutex_lock(&lock);
  run_jobs(queue);
  while (queue->fd >= 0 && queue->wake_fd >= 0 && !queue->is_ending) {
    pthread_mutex_unlock(&lock);
    wait_for_news(queue);
    pthread_mutex_lock(&lock);
    run_jobs(queue);
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
  if (queue->wake_fd < 0) {
    queue->wake_fd = DESCRIPTOR(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  eventfd_write(queue->wake_fd, 1);
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
  queue->is_ending = true;
  eventfd_write(queue->wake_fd, 1);
  while (queue->is_running) {
    pthread_cond_wait(&finished, &lock);
  }
  queue->is_ending = false;
  while ((node = list_pop_front(&queue->kept))) {
    list_push_back(&queue->waiting, node);
  }
  queue->is_running = true; /* here: what waits for a thread */
  run_jobs(queue);
  queue->is_running = false;
  if (queue->wake_fd >= 0) {
    descriptor_close(queue->wake_fd);
    queue->wake_fd = -1;
  }
  pthread_mutex_unlock(&lock);
}
