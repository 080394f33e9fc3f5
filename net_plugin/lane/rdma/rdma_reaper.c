/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_reaper.h. */
#include "net_plugin/lane/rdma/rdma_reaper.h"

#include <pthread.h>

#include "common/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
/* Below: covered by the lock. */
static struct list waiting = { { &waiting.head, &waiting.head } };
static struct list refused = { { &refused.head, &refused.head } };
static bool is_running; /* a thread is at work, and checks the list before it ends */

static void *reap(void *unused) {
  struct list_node *node;
  (void)unused;
  pthread_mutex_lock(&lock);
  while ((node = list_first(&waiting))) {
    struct rdma_remains *remains = LIST_ENTRY(node, struct rdma_remains, node);
    list_remove(node);
    pthread_mutex_unlock(&lock);
    bool is_destroyed = remains->destroy(remains);
    pthread_mutex_lock(&lock);
    if (!is_destroyed) {
      list_push_back(&refused, &remains->node);
    }
  }
  is_running = false;
  pthread_cond_broadcast(&finished);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static bool start_reaping(void) {
  pthread_t thread;
  bool is_started = thread_start(&thread, reap, NULL) == 0;
  if (is_started) {
    pthread_detach(thread);
  }
  return is_started;
}

/* With the lock held. */
static void try_refused_again(void) {
  struct list_node *node;
  while ((node = list_first(&refused))) {
    list_remove(node);
    list_push_back(&waiting, node);
  }
}

void rdma_reaper_take(struct rdma_remains *remains) {
  pthread_mutex_lock(&lock);
  try_refused_again();
  list_push_back(&waiting, &remains->node);
  bool must_start = !is_running;
  is_running = true;
  pthread_mutex_unlock(&lock);
  if (must_start && !start_reaping()) {
    reap(NULL);
  }
}

void rdma_reaper_finish(void) {
  pthread_mutex_lock(&lock);
  while (is_running) {
    pthread_cond_wait(&finished, &lock);
  }
  try_refused_again();
  is_running = true;
  pthread_mutex_unlock(&lock);
  reap(NULL);
}
