/* SPDX-License-Identifier: Apache-2.0 */
/* engine_state: the inside of an engine, for the files engine*.c only.
 * Owns: the struct.  Threads: as the fields say.  Blocks: never.  Fails: cannot.
 *
 *   engine.c        lock, tasks, descriptors, timers; who moves the bytes
 *   engine_life.c   which engines there are: made, taken round robin, visited, ended */
#ifndef NET_PLUGIN_ENGINE_ENGINE_STATE_H
#define NET_PLUGIN_ENGINE_ENGINE_STATE_H

#include <pthread.h>
#include <sys/epoll.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/engine/limits.h"
#include "net_plugin/policy/policy_shared.h"

#define NO_DEADLINE UINT64_MAX

/* Who moves the bytes of an engine; fixed when it starts. */
enum progress_mode {
  PROGRESS_INLINE, /* NCCL's threads post and poll; the engine's keeps off meanwhile */
  PROGRESS_THREAD, /* NCCL's threads only post; the engine's takes every event as it comes */
};

struct engine {
  struct nic nic;
  unsigned shard;
  struct engine *first; /* shard 0 of the NIC */
  pthread_mutex_t lock;
#ifdef STRATUS_CHECKED
  _Atomic(const void *) holder; /* a mark of the thread that holds the lock */
#endif
  int epoll_fd;
  int wake_fd; /* eventfd that only the thread reads */
  pthread_t thread;
  atomic_bool is_stopping;
  enum progress_mode mode;          /* fixed at start */
  atomic_int tcp_lanes, rdma_lanes; /* that are open */
  atomic_uint lock_waiters;         /* threads that wait for the lock */
  _Atomic uint64_t nccl_polled_ns;  /* when a thread of NCCL last polled; 0: left to the thread */
  _Atomic uint64_t idle_slept_ns;   /* when a thread of NCCL last woke from an idle sleep */
  _Atomic(struct engine_task *) tasks;

  /* guarded by the lock */
  struct list timers;
  uint64_t next_deadline_ns;  /* never later than the earliest timer */
  uint64_t sleeping_until_ns; /* the thread sleeps until then; 0: it is woken for no deadline */
  struct epoll_event events[EVENTS_PER_ROUND];
  int events_left;      /* of the round being delivered */
  struct list deferred; /* until these are delivered */
  uint64_t polled_ns;   /* when engine_poll was called last */
  struct engine_lists lists;
  struct policy_shared policy_shared;

  /* guarded by the lock of all engines, engine_life.c */
  unsigned turns[ENGINE_USES]; /* shard 0: whose turn it is */
  struct list_node node;
};

/* ---- engine_life.c; for tests, too ---- */

/* Where the user does not say: THREAD if the process may use CPUs enough for the threads of so many
 * engines next to NCCL's. */
enum progress_mode progress_mode_choose(unsigned cpus, unsigned engines);

/* How many engines a NIC gets where the user does not say: the process may use so many CPUs, and
 * uses so many NICs. At least one; together not more than PROGRESS_ENGINES_MAX, if the NICs are
 * not. */
unsigned progress_mode_engines(unsigned cpus, unsigned nics);

/* ---- engine.c ---- */

/* What the thread runs. */
void *engine_thread(void *engine);
/* Ends the thread and waits for it. */
void engine_end_thread(struct engine *engine);

#endif
