/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_guard.h. */
#include "net_plugin/lane/rdma/rdma_guard.h"

#include <pthread.h>
#include <stdbool.h>

#include "common/clock.h"
#include "common/thread.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_device.h"
#include "net_plugin/lane/rdma/rdma_memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static pthread_once_t wake_once = PTHREAD_ONCE_INIT;
/* Below: covered by the lock. */
static pthread_t thread;
static bool is_running, must_end;

static void *run(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (!must_end) {
    struct timespec until = clock_timespec(clock_now_ns() + RDMA_GUARD_CHECK_NS);
    pthread_cond_timedwait(&wake, &lock, &until);
    pthread_mutex_unlock(&lock);
    rdma_device_check_all();
    rdma_memory_forget_lost();
    pthread_mutex_lock(&lock);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void make_wake(void) {
  thread_init_condition(&wake);
}

void rdma_guard_start(void) {
  pthread_once(&wake_once, make_wake);
  pthread_mutex_lock(&lock);
  if (!is_running) {
    must_end = false;
    is_running = thread_start(&thread, run, NULL) == 0;
  }
  pthread_mutex_unlock(&lock);
}

void rdma_guard_finish(void) {
  pthread_once(&wake_once, make_wake);
  pthread_mutex_lock(&lock);
  bool was_running = is_running;
  must_end = true;
  pthread_cond_signal(&wake);
  pthread_mutex_unlock(&lock);
  if (was_running) {
    pthread_join(thread, NULL);
    pthread_mutex_lock(&lock);
    is_running = false;
    pthread_mutex_unlock(&lock);
  }
}
