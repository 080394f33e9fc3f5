/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_opener.h. */
#include "net_plugin/lane/rdma/rdma_opener.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/list.h"
#include "common/log.h"
#include "common/thread.h"
#include "net_plugin/lane/rdma/rdma_guard.h"
#include "net_plugin/lane/rdma/rdma_memory.h"

/* A NIC that a thread looks at. */
struct look {
  struct list_node node;
  struct nic nic;
  uint64_t since_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static struct list looks = { { &looks.head, &looks.head } }; /* covered by the lock */

/* From then on rdma_memory holds the device. */
static void prepare(struct rdma_device *device) {
  bool is_new = !rdma_memory_is_attached(device);
  int domain = rdma_memory_attach(device);
  if (domain < 0) {
    rdma_device_refuse(&device->nic, "too many RDMA devices are in use");
    return;
  }
  LOG_AT(is_new ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "%s, the RDMA device of %s, is open: port %u",
         device->port.name, device->nic.name, device->port.port);
  rdma_guard_start();
  rdma_memory_detach(domain);
}

static void *run(void *argument) {
  struct look *look = argument;
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_device_open(&look->nic, why);
  if (device) {
    prepare(device);
    rdma_device_close(device);
  }
  pthread_mutex_lock(&lock);
  list_remove(&look->node);
  free(look);
  pthread_cond_broadcast(&over);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* With the lock held. */
static struct look *find(const struct nic *nic) {
  LIST_FOR_EACH(node, &looks) {
    struct look *look = LIST_ENTRY(node, struct look, node);
    if (rdma_device_is_same_nic(&look->nic, nic)) {
      return look;
    }
  }
  return NULL;
}

/* With the lock held. */
static void start(const struct nic *nic) {
  struct look *look = calloc(1, sizeof *look);
  pthread_t thread;
  if (!look) {
    return;
  }
  look->nic = *nic;
  look->since_ns = clock_now_ns();
  list_push_back(&looks, &look->node);
  if (thread_start(&thread, run, look) == 0) {
    pthread_detach(thread);
  } else { /* the next one who asks may have more luck */
    list_remove(&look->node);
    free(look);
  }
}

struct rdma_device *rdma_opener_take(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  struct rdma_device *device = rdma_device_find(nic, why);
  if (device && rdma_memory_is_attached(device)) {
    return device;
  }
  if (device) {
    rdma_device_close(device);
  } else if (why[0]) {
    return NULL;
  }
  pthread_mutex_lock(&lock);
  if (!find(nic)) {
    start(nic);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void wait_for(const struct nic *nic) {
  const struct look *look;
  pthread_mutex_lock(&lock);
  while ((look = find(nic))) {
    struct timespec until = clock_timespec(look->since_ns + RDMA_OPENER_WAIT_NS);
    if (pthread_cond_clockwait(&over, &lock, CLOCK_MONOTONIC, &until) != 0) {
      break;
    }
  }
  pthread_mutex_unlock(&lock);
}

void rdma_opener_wait(const struct nic *nics, unsigned count) {
  char why[RDMA_WHY_MAX];
  for (unsigned i = 0; i < count; i++) {
    struct rdma_device *device = rdma_opener_take(&nics[i], why);
    if (device) {
      rdma_device_close(device);
    }
  }
  for (unsigned i = 0; i < count; i++) {
    wait_for(&nics[i]);
  }
}

void rdma_opener_finish(void) {
  pthread_mutex_lock(&lock);
  while (list_first(&looks)) {
    pthread_cond_wait(&over, &lock);
  }
  pthread_mutex_unlock(&lock);
}
