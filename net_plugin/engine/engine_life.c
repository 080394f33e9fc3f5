/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. Which engines there are. They are made when they are first needed: the first of a
 * NIC, its shard 0, before its others, and they end in the opposite order. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/control_group.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "common/thread.h"
#include "net_plugin/engine/engine_state.h"
#include "net_plugin/engine/limits.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list registry = { { &registry.head, &registry.head } };
static const struct engine_observer *observer; /* guarded by registry_lock */

void engine_observe(const struct engine_observer *told) {
  pthread_mutex_lock(&registry_lock);
  observer = told;
  pthread_mutex_unlock(&registry_lock);
}

/* ---- how many, and who moves their bytes ---- */

enum progress_mode progress_mode_choose(unsigned cpus, unsigned engines) {
  return cpus >= PROGRESS_THREAD_CPUS && cpus >= engines + PROGRESS_OTHER_CPUS ? PROGRESS_THREAD
                                                                               : PROGRESS_INLINE;
}

unsigned progress_mode_engines(unsigned cpus, unsigned nics) {
  unsigned engines = cpus < PROGRESS_TWO_ENGINES_CPUS    ? 1
                     : cpus < PROGRESS_MOST_ENGINES_CPUS ? 2
                                                         : PROGRESS_ENGINES_MAX;
  unsigned share = nics ? PROGRESS_ENGINES_MAX / nics : PROGRESS_ENGINES_MAX;
  share = share ? share : 1;
  return engines < share ? engines : share;
}

static unsigned count_cpus(void) {
  char limit[CONTROL_GROUP_TEXT_MAX];
  static bool is_told; /* guarded by registry_lock */
  unsigned cpus = control_group_cpus(sysfs_process_root, limit);
  if (*limit && !is_told) {
    LOG_INFO("threads are made for %u CPUs: %s", cpus, limit);
    is_told = true;
  }
  return cpus;
}

static bool engine_is_of(const struct engine *engine, const struct nic *nic) {
  return strcmp(engine->nic.name, nic->name) == 0;
}

struct census {
  unsigned engines, nics; /* in all */
  unsigned here;          /* of the NIC in question */
};

static struct census count_engines(const struct nic *nic) {
  struct census census = { 0 };
  LIST_FOR_EACH(node, &registry) {
    const struct engine *engine = LIST_ENTRY(node, struct engine, node);
    census.engines++;
    census.nics += engine->shard == 0;
    census.here += engine_is_of(engine, nic);
  }
  census.nics += census.here == 0;
  return census;
}

/* How many engines the NIC may have. Where NICs come into use one after the other, the first may
 * have more than its share. */
static unsigned count_shards(const struct nic *nic) {
  unsigned wanted = (unsigned)param_int(PARAM_THREADS);
  if (wanted) {
    return wanted;
  }
  struct census census = count_engines(nic);
  unsigned share = progress_mode_engines(count_cpus(), census.nics);
  unsigned room = census.engines < PROGRESS_ENGINES_MAX ? PROGRESS_ENGINES_MAX - census.engines : 0;
  unsigned most = census.here + room;
  share = share < most ? share : most;
  return share > census.here ? share : census.here ? census.here : 1;
}

/* ---- making one ---- */

static int start_thread(struct engine *engine) {
  int error = thread_start(&engine->thread, engine_thread, engine);
  if (error) {
    return error;
  }
  /* It is born with the CPUs of the thread of NCCL that needed it first. */
  if (CPU_COUNT(&engine->nic.thread_cpus) > 0) {
    error = pthread_setaffinity_np(engine->thread, sizeof engine->nic.thread_cpus,
                                   &engine->nic.thread_cpus);
    if (error) {
      LOG_INFO("the thread of %s stays on the CPUs it has: %s", engine->nic.name, strerror(error));
    }
  }
  return 0;
}

/* What the user says, or what the CPUs allow once the NIC has all its engines. */
static enum progress_mode choose_mode(const struct nic *nic) {
  int setting = param_enum(PARAM_PROGRESS);
  if (setting != PARAM_PROGRESS_AUTO) {
    return setting == PARAM_PROGRESS_THREAD ? PROGRESS_THREAD : PROGRESS_INLINE;
  }
  struct census census = count_engines(nic);
  unsigned planned = census.nics * count_shards(nic);
  return progress_mode_choose(count_cpus(),
                              planned > census.engines ? planned : census.engines + 1);
}

/* *step: what failed. */
static int open_descriptors(struct engine *engine, const char **step) {
  *step = "epoll_create1";
  engine->epoll_fd = DESCRIPTOR(epoll_create1(EPOLL_CLOEXEC));
  if (engine->epoll_fd >= 0) {
    *step = "eventfd";
  }
  engine->wake_fd = engine->epoll_fd < 0 ? -1 : DESCRIPTOR(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return engine->wake_fd < 0 ? -errno : 0;
}

/* A limit is named where the error is one of limits: a filter of system calls and an old kernel
 * have others. */
static void tell_no_engine(const struct nic *nic, const char *step, int error) {
  char limit[CONTROL_GROUP_TEXT_MAX] = "", why[OPEN_FILES_TEXT];
  bool is_limit = error == -EAGAIN; /* of threads */
  if (is_limit) {
    control_group_threads(sysfs_process_root, limit);
  }
  LOG_WARN("cannot start the engine of %s: %s: %s%s%s", nic->name, step, open_files_why(error, why),
           is_limit ? "; the number of threads is limited: ulimit -u, " : "",
           *limit || !is_limit ? limit : "pids.max of control groups");
}

static void close_descriptors(struct engine *engine) {
  if (engine->wake_fd >= 0) {
    descriptor_close(engine->wake_fd);
  }
  if (engine->epoll_fd >= 0) {
    descriptor_close(engine->epoll_fd);
  }
}

static int engine_new(const struct nic *nic, unsigned shard, struct engine **result) {
  const char *step;
  struct engine *engine = calloc(1, sizeof *engine);
  if (!engine) {
    return -ENOMEM;
  }
  engine->nic = *nic;
  engine->shard = shard;
  engine->next_deadline_ns = NO_DEADLINE;
  pthread_mutex_init(&engine->lock, NULL);
  list_init(&engine->timers);
  list_init(&engine->deferred);
  list_init(&engine->lists.connections);
  list_init(&engine->lists.ports);
  list_init(&engine->lists.listeners);
  engine->mode = choose_mode(nic);
  policy_shared_init(&engine->policy_shared);
  int error = open_descriptors(engine, &step);
  if (!error) {
    step = "pthread_create";
    error = start_thread(engine);
  }
  if (error) {
    close_descriptors(engine);
    free(engine);
    tell_no_engine(nic, step, error);
    return error;
  }
  *result = engine;
  return 0;
}

static struct engine *engine_find(const struct nic *nic, unsigned shard) {
  LIST_FOR_EACH(node, &registry) {
    struct engine *engine = LIST_ENTRY(node, struct engine, node);
    if (engine_is_of(engine, nic) && engine->shard == shard) {
      return engine;
    }
  }
  return NULL;
}

static int engine_find_or_make(const struct nic *nic, unsigned shard, struct engine **result) {
  *result = engine_find(nic, shard);
  if (*result && memcmp(&(*result)->nic.address, &nic->address, sizeof nic->address) != 0) {
    engine_lock(*result);
    (*result)->nic.address = nic->address; /* it got another one */
    engine_unlock(*result);
  }
  if (*result) {
    return 0;
  }
  int error = engine_new(nic, shard, result);
  if (!error) {
    (*result)->first = shard ? engine_find(nic, 0) : *result;
    list_push_back(&registry, &(*result)->node);
    engine_lock(*result);
    if (observer) {
      observer->started(*result);
    }
    engine_unlock(*result);
  }
  return error;
}

static bool has_room_for_more(const struct nic *nic) {
  char limit[CONTROL_GROUP_TEXT_MAX];
  static bool is_told; /* guarded by registry_lock */
  if (control_group_threads(sysfs_process_root, limit) > THREADS_FOR_NCCL) {
    return true;
  }
  if (!is_told) {
    LOG_INFO("%s has fewer threads than it could, as NCCL may need those that are left: %s",
             nic->name, limit);
  }
  is_told = true;
  return false;
}

int engine_get(const struct nic *nic, enum engine_use use, struct engine **result) {
  struct engine *first;
  pthread_mutex_lock(&registry_lock);
  int error = engine_find_or_make(nic, 0, &first);
  *result = first;
  if (!error) {
    unsigned shard = first->turns[use]++ % count_shards(nic);
    bool is_possible = engine_find(nic, shard) || has_room_for_more(nic);
    if (!is_possible || engine_find_or_make(nic, shard, result) != 0) {
      *result = first; /* it can do the work of all */
    }
  }
  pthread_mutex_unlock(&registry_lock);
  return error;
}

/* ---- all of them ---- */

int engine_try_visit(struct engine *held, unsigned index,
                     void (*visit)(struct engine *engine, void *argument), void *argument) {
  if (pthread_mutex_trylock(&registry_lock) != 0) {
    return -EAGAIN;
  }
  struct list_node *node = list_first(&registry);
  while (node && index-- > 0) {
    node = node->next == &registry.head ? NULL : node->next;
  }
  struct engine *engine = node ? LIST_ENTRY(node, struct engine, node) : NULL;
  int error = engine ? 0 : -ENOENT;
  if (engine == held && held) {
    visit(engine, argument);
  } else if (engine && engine_try_lock(engine)) {
    visit(engine, argument);
    engine_unlock(engine);
  } else if (engine) {
    error = -EAGAIN;
  }
  pthread_mutex_unlock(&registry_lock);
  return error;
}

void engine_visit_all(void (*visit)(struct engine *engine, void *argument), void *argument) {
  pthread_mutex_lock(&registry_lock);
  LIST_FOR_EACH(node, &registry) {
    struct engine *engine = LIST_ENTRY(node, struct engine, node);
    engine_lock(engine);
    visit(engine, argument);
    engine_unlock(engine);
  }
  pthread_mutex_unlock(&registry_lock);
}

static void drain_connections(struct engine *engine, uint64_t until_ns) {
  for (;;) {
    engine_lock(engine);
    engine_poll(engine);
    bool is_done = list_is_empty(&engine->lists.connections);
    engine_unlock(engine);
    if (is_done || clock_now_ns() >= until_ns) {
      return;
    }
    struct timespec pause = { .tv_nsec = 200 * (long)NS_PER_US };
    struct pollfd waited = { .fd = engine->epoll_fd, .events = POLLIN };
    ppoll(&waited, 1, &pause, NULL);
  }
}

static void engine_free(struct engine *engine, void (*stop)(struct engine *engine)) {
  engine_end_thread(engine);
  engine_lock(engine);
  if (stop) {
    stop(engine);
  }
  if (observer) {
    observer->stopping(engine);
  }
  engine_unlock(engine);
  close_descriptors(engine);
  pthread_mutex_destroy(&engine->lock);
  free(engine);
}

void engine_stop_all(uint64_t linger_ns, void (*stop)(struct engine *engine)) {
  uint64_t until_ns = clock_now_ns() + linger_ns;
  pthread_mutex_lock(&registry_lock);
  struct list_node *node;
  while ((node = list_last(&registry))) {
    struct engine *engine = LIST_ENTRY(node, struct engine, node);
    list_remove(node);
    drain_connections(engine, until_ns);
    engine_free(engine, stop);
  }
  pthread_mutex_unlock(&registry_lock);
}
