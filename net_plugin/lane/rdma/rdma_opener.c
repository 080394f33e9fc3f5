/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_opener.h. */
#include "net_plugin/lane/rdma/rdma_opener.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/thread.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_memory.h"
#include "net_plugin/lane/rdma/rdma_worker.h"

/* A NIC whose device a worker is searching and opening. */
struct search {
  struct rdma_job job;
  struct list_node node;
  struct nic nic;
  uint64_t since_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t search_over;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Below: covered by the lock. */
static struct list searches = { { &searches.head, &searches.head } };

static void make_conditions(void) {
  thread_init_condition(&search_over);
}

/* ---- searches ---- */

/* From then on rdma_memory holds the device. */
static void prepare(struct rdma_device *device) {
  bool is_new = !atomic_load(&device->is_attached);
  int domain = rdma_memory_attach(device);
  if (domain < 0) {
    rdma_device_refuse(&device->nic, "too many RDMA devices are in use");
    return;
  }
  LOG_AT(is_new ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "%s, the RDMA device of %s, is open: port %u",
         device->port.name, device->nic.name, device->port.port);
  rdma_memory_detach(domain);
}

static bool run(struct rdma_job *job) {
  struct search *search = LIST_ENTRY(job, struct search, job);
  char why[RDMA_WHY_MAX];
  rdma_memory_release(false); /* the one before it, if it is lost */
  struct rdma_device *device = rdma_device_open(&search->nic, why);
  if (device) {
    prepare(device);
    rdma_device_close(device);
  }
  pthread_mutex_lock(&lock);
  list_remove(&search->node);
  free(search);
  pthread_cond_broadcast(&search_over);
  pthread_mutex_unlock(&lock);
  return true;
}

/* With the lock held. */
static struct search *find_search(const struct nic *nic) {
  LIST_FOR_EACH(node, &searches) {
    struct search *search = LIST_ENTRY(node, struct search, node);
    if (rdma_device_is_same_nic(&search->nic, nic)) {
      return search;
    }
  }
  return NULL;
}

/* With the lock held. */
static void start_search(const struct nic *nic) {
  struct search *search = calloc(1, sizeof *search);
  if (!search) {
    return;
  }
  pthread_once(&once, make_conditions);
  search->job.run = run;
  search->nic = *nic;
  search->since_ns = clock_now_ns();
  list_push_back(&searches, &search->node);
  if (!rdma_worker_submit(RDMA_QUEUE_OPEN, nic, &search->job) &&
      rdma_worker_take_back(&search->job)) { /* no thread: the next call tries again */
    list_remove(&search->node);
    free(search);
  }
}

struct rdma_device *rdma_opener_take(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  struct rdma_device *device = rdma_device_find(nic, why);
  if (!device && !why[0]) {
    pthread_mutex_lock(&lock);
    if (!find_search(nic)) {
      start_search(nic);
    }
    pthread_mutex_unlock(&lock);
  }
  return device;
}

bool rdma_opener_has(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  struct rdma_device *device = rdma_opener_take(nic, why);
  if (device) {
    rdma_device_release(device);
  }
  return device != NULL;
}

static void wait_for(const struct nic *nic) {
  const struct search *search;
  pthread_once(&once, make_conditions);
  pthread_mutex_lock(&lock);
  while ((search = find_search(nic))) {
    struct timespec until = clock_timespec(search->since_ns + RDMA_OPENER_WAIT_NS);
    if (pthread_cond_timedwait(&search_over, &lock, &until) != 0) {
      break;
    }
  }
  pthread_mutex_unlock(&lock);
}

void rdma_opener_wait(const struct nic *nics, unsigned count) {
  char why[RDMA_WHY_MAX];
  for (unsigned i = 0; i < count; i++) {
    rdma_opener_has(&nics[i], why);
  }
  for (unsigned i = 0; i < count; i++) {
    wait_for(&nics[i]);
  }
}

void rdma_opener_finish(void) {
  pthread_once(&once, make_conditions);
  pthread_mutex_lock(&lock);
  while (list_first(&searches)) {
    pthread_cond_wait(&search_over, &lock);
  }
  pthread_mutex_unlock(&lock);
}
