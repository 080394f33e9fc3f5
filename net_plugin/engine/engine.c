/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. The lock's holder does the work. Why nothing is left undone while all sleep:
 *
 *   task      It is in the stack before its poster tries the lock; who unlocks looks at the stack
 *             afterwards. One of the two runs it: the thread need not be woken.
 *   event     The epoll set stays readable until it is served, which ends a sleep on the set.
 *   deferred  Run in the same engine_poll or engine_poll_if_due, before the lock is given back.
 *   deadline  Set under the lock, under which the thread reads the next one and sets
 *             sleeping_until_ns: one set before is seen, an earlier one set later wakes it.
 *   hold      Ends by itself soon after the last poll. Until then the thread takes no lock and
 *             sleeps on wake_fd alone; events and deadlines are the pollers', afterwards its own.
 *   wake-up   wake_fd stays readable until the thread, and nobody else, reads it. Written for
 *             three things: an earlier deadline, engine_leave_to_thread, the end. */
#include "net_plugin/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/engine/engine_state.h"
#include "net_plugin/engine/limits.h"

struct policy_shared *engine_policy_shared(struct engine *engine) {
  engine_assert_locked(engine);
  return &engine->policy_shared;
}

struct engine_lists *engine_lists(struct engine *engine) {
  engine_assert_locked(engine);
  return &engine->lists;
}

const struct nic *engine_nic(const struct engine *engine) {
  return &engine->nic;
}

unsigned engine_shard(const struct engine *engine) {
  return engine->shard;
}

struct engine *engine_first(struct engine *engine) {
  return engine->first;
}

/* Also if it is about to sleep. */
static void wake_thread(struct engine *engine) {
  uint64_t one = 1;
  if (write(engine->wake_fd, &one, sizeof one) < 0 && errno != EAGAIN) {
    LOG_WARN_EVERY(ENGINE_WARN_INTERVAL_NS, "engine wake-up: %s", strerror(errno));
  }
}

/* ---- tasks and the lock ---- */

bool engine_run_tasks(struct engine *engine) {
  engine_assert_locked(engine);
  struct engine_task *stack = atomic_exchange(&engine->tasks, NULL);
  bool has_run = stack;
  while (stack) {
    struct engine_task *task = stack;
    stack = task->next;
    /* Reads what the last poster wrote there, and so sees what it posted. */
    atomic_exchange(&task->is_queued, false);
    task->run(task);
  }
  return has_run;
}

/* Who holds the lock: for engine_assert_locked. */
#ifdef STRATUS_CHECKED
static __thread unsigned locks_held;

static void note_lock(struct engine *engine, bool is_held) {
  if (is_held) {
    locks_held++;
  } else {
    locks_held--;
  }
  atomic_store(&engine->holder, is_held ? &locks_held : NULL);
}

void engine_assert_locked(const struct engine *engine) {
  if (atomic_load(&engine->holder) != &locks_held) {
    fprintf(stderr, "a function that needs the lock of engine %s is called without it\n",
            engine->nic.name);
    abort();
  }
}

bool engine_is_any_locked(void) {
  return locks_held > 0;
}
#else
static void note_lock(struct engine *engine, bool is_held) {
  (void)engine;
  (void)is_held;
}
#endif

void engine_lock(struct engine *engine) {
  if (!engine_try_lock(engine)) {
    atomic_fetch_add(&engine->lock_waiters, 1);
    pthread_mutex_lock(&engine->lock);
    atomic_fetch_sub(&engine->lock_waiters, 1);
    note_lock(engine, true);
  }
}

bool engine_try_lock(struct engine *engine) {
  bool is_locked = pthread_mutex_trylock(&engine->lock) == 0;
  if (is_locked) {
    note_lock(engine, true);
  }
  return is_locked;
}

void engine_unlock(struct engine *engine) {
  for (;;) {
    note_lock(engine, false);
    pthread_mutex_unlock(&engine->lock);
    if (!atomic_load(&engine->tasks) || !engine_try_lock(engine)) {
      return;
    }
    engine_run_tasks(engine);
  }
}

void engine_submit(struct engine *engine, struct engine_task *task) {
  if (engine_try_lock(engine)) {
    task->run(task);
    engine_unlock(engine);
    return;
  }
  if (!atomic_exchange(&task->is_queued, true)) {
    struct engine_task *top = atomic_load(&engine->tasks);
    do {
      task->next = top;
    } while (!atomic_compare_exchange_weak(&engine->tasks, &top, task));
  }
  if (engine_try_lock(engine)) { /* else its holder looks at the stack when it unlocks */
    engine_run_tasks(engine);
    engine_unlock(engine);
  }
}

/* ---- watched descriptors ---- */

int engine_watch(struct engine *engine, struct engine_source *source, int fd, uint32_t events) {
  engine_assert_locked(engine);
  source->fd = fd;
  source->events = events;
  struct epoll_event event = { .events = events, .data.ptr = source };
  return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void engine_rewatch(struct engine *engine, struct engine_source *source, uint32_t events) {
  engine_assert_locked(engine);
  if (source->events != events) {
    source->events = events;
    struct epoll_event event = { .events = events, .data.ptr = source };
    epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
  }
}

void engine_unwatch(struct engine *engine, struct engine_source *source) {
  engine_assert_locked(engine);
  if (source->fd < 0) {
    return;
  }
  epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
  source->fd = -1;
  /* Events of this round that were not delivered yet must not reach a source that is gone. */
  for (int i = 0; i < engine->events_left; i++) {
    if (engine->events[i].data.ptr == source) {
      engine->events[i].data.ptr = NULL;
    }
  }
}

/* ---- timers ---- */

void engine_timer_set(struct engine *engine, struct engine_timer *timer, uint64_t deadline_ns) {
  engine_assert_locked(engine);
  if (timer->deadline_ns == 0) {
    list_push_back(&engine->timers, &timer->node);
  }
  timer->deadline_ns = deadline_ns;
  if (deadline_ns < engine->next_deadline_ns) {
    engine->next_deadline_ns = deadline_ns;
    if (deadline_ns < engine->sleeping_until_ns) {
      engine->sleeping_until_ns = 0;
      wake_thread(engine);
    }
  }
}

void engine_timer_stop(struct engine_timer *timer) {
  if (timer->deadline_ns) {
    timer->deadline_ns = 0;
    list_remove(&timer->node);
  }
}

static bool expire_timers(struct engine *engine, uint64_t now_ns) {
  if (now_ns < engine->next_deadline_ns) {
    return false;
  }
  /* An expired() may arm, stop or free any timer, so each is taken from a list that shrinks. */
  struct list due;
  list_init(&due);
  uint64_t next_ns = NO_DEADLINE;
  LIST_FOR_EACH_SAFE(node, &engine->timers) {
    struct engine_timer *timer = LIST_ENTRY(node, struct engine_timer, node);
    if (timer->deadline_ns <= now_ns) {
      list_remove(node);
      list_push_back(&due, node);
    } else if (timer->deadline_ns < next_ns) {
      next_ns = timer->deadline_ns;
    }
  }
  engine->next_deadline_ns = next_ns;
  struct list_node *node;
  while ((node = list_pop_front(&due))) {
    struct engine_timer *timer = LIST_ENTRY(node, struct engine_timer, node);
    if (timer->deadline_ns > now_ns) {
      list_push_back(&engine->timers, node); /* one before it has put it off */
    } else {
      timer->deadline_ns = 0;
      timer->expired(timer, now_ns);
    }
  }
  return true;
}

/* ---- polling ---- */

void engine_defer(struct engine *engine, struct engine_deferred *deferred) {
  engine_assert_locked(engine);
  if (!deferred->is_queued) {
    deferred->is_queued = true;
    list_push_back(&engine->deferred, &deferred->node);
  }
}

void engine_run_deferred(struct engine *engine) {
  engine_assert_locked(engine);
  struct list_node *node;
  while ((node = list_pop_front(&engine->deferred))) {
    struct engine_deferred *deferred = LIST_ENTRY(node, struct engine_deferred, node);
    deferred->is_queued = false;
    deferred->run(deferred);
  }
}

void engine_cancel(struct engine_deferred *deferred) {
  if (deferred->is_queued) {
    deferred->is_queued = false;
    list_remove(&deferred->node);
  }
}

bool engine_poll(struct engine *engine) {
  engine_assert_locked(engine);
  int count = epoll_wait(engine->epoll_fd, engine->events, EVENTS_PER_ROUND, 0);
  engine->events_left = count > 0 ? count : 0;
  while (engine->events_left > 0) {
    struct epoll_event *event = &engine->events[--engine->events_left];
    struct engine_source *source = event->data.ptr;
    if (source) {
      source->ready(source, event->events);
    }
  }
  engine_run_deferred(engine);
  bool has_tasks = engine_run_tasks(engine);
  engine->polled_ns = clock_now_ns();
  bool has_deadlines = expire_timers(engine, engine->polled_ns);
  return count > 0 || has_tasks || has_deadlines;
}

void engine_poll_if_due(struct engine *engine, bool is_only_rdma, uint64_t now_ns) {
  engine_assert_locked(engine);
  uint64_t period_ns = is_only_rdma ? RDMA_EPOLL_PERIOD_NS : EPOLL_PERIOD_NS;
  if (now_ns >= engine->polled_ns + period_ns || now_ns >= engine->next_deadline_ns) {
    engine_poll(engine);
  } else {
    engine_run_deferred(engine);
  }
}

static bool has_only_rdma(const struct engine *engine) {
  return atomic_load_explicit(&engine->tcp_lanes, memory_order_relaxed) == 0 &&
         atomic_load_explicit(&engine->rdma_lanes, memory_order_relaxed) > 0;
}

bool engine_is_polled(const struct engine *engine) {
  return engine->mode == PROGRESS_INLINE || has_only_rdma(engine);
}

bool engine_progress_begin(struct engine *engine, uint64_t now_ns) {
  if (!engine_is_polled(engine)) {
    return false;
  }
  atomic_store_explicit(&engine->nccl_polled_ns, now_ns, memory_order_relaxed);
  return engine_try_lock(engine);
}

void engine_progress(struct engine *engine) {
  if (engine_progress_begin(engine, clock_now_ns())) {
    engine_poll(engine);
    engine_unlock(engine);
  }
}

void engine_leave_to_thread(struct engine *engine) {
  engine_assert_locked(engine);
  if (atomic_exchange_explicit(&engine->nccl_polled_ns, 0, memory_order_relaxed)) {
    wake_thread(engine);
  }
}

void engine_count_lanes(struct engine *engine, bool is_rdma, int change) {
  engine_assert_locked(engine);
  atomic_fetch_add_explicit(is_rdma ? &engine->rdma_lanes : &engine->tcp_lanes, change,
                            memory_order_relaxed);
}

/* ---- idle waiters ---- */

/* When anything moved, or was posted, on any engine of the process; not exactly. */
static _Atomic uint64_t active_ns;

void engine_note_activity(uint64_t now_ns) {
  if (now_ns > atomic_load_explicit(&active_ns, memory_order_relaxed) + ACTIVITY_GRAIN_NS) {
    atomic_store_explicit(&active_ns, now_ns, memory_order_relaxed);
  }
}

void engine_idle_sleep(struct engine *engine, uint64_t now_ns) {
  uint64_t idle_ns = atomic_load_explicit(&active_ns, memory_order_relaxed) + IDLE_AFTER_NS;
  if (now_ns < idle_ns ||
      now_ns < atomic_load_explicit(&engine->idle_slept_ns, memory_order_relaxed) + IDLE_POLL_NS) {
    return;
  }
  struct pollfd event = { .fd = engine->epoll_fd, .events = POLLIN };
  static const struct timespec timeout = { .tv_nsec = IDLE_SLEEP_NS };
  ppoll(&event, 1, &timeout, NULL);
  atomic_store_explicit(&engine->idle_slept_ns, clock_now_ns(), memory_order_relaxed);
}

/* ---- the engine's thread ---- */

/* Until when the thread keeps off; in the past: it does not. */
static uint64_t hold_end_ns(const struct engine *engine) {
  uint64_t polled_ns = atomic_load_explicit(&engine->nccl_polled_ns, memory_order_relaxed);
  if (polled_ns == 0 || !engine_is_polled(engine)) {
    return 0;
  }
  return polled_ns + (has_only_rdma(engine) ? RDMA_HOLD_NS : HOLD_NS);
}

/* Until when the thread sleeps, if nothing wakes it. A hold takes no lock: a holder that is not
 * given a CPU would stop the pollers. */
static uint64_t prepare_sleep(struct engine *engine, bool *is_hold) {
  uint64_t now_ns = clock_now_ns(), until_ns = hold_end_ns(engine);
  *is_hold = now_ns < until_ns;
  if (*is_hold) {
    return until_ns < now_ns + HOLD_CHECK_NS ? until_ns : now_ns + HOLD_CHECK_NS;
  }
  engine_lock(engine);
  until_ns = engine->next_deadline_ns;
  engine->sleeping_until_ns = until_ns;
  engine_unlock(engine);
  return until_ns;
}

static void thread_sleep(struct engine *engine) {
  bool is_hold;
  uint64_t until_ns = prepare_sleep(engine, &is_hold), now_ns = clock_now_ns(), count;
  struct timespec timeout = clock_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
  struct pollfd waited[] = { { .fd = engine->wake_fd, .events = POLLIN },
                             { .fd = engine->epoll_fd, .events = POLLIN } };
  ppoll(waited, is_hold ? 1 : 2, until_ns == NO_DEADLINE ? NULL : &timeout, NULL);
  if (waited[0].revents && read(engine->wake_fd, &count, sizeof count) < 0) {
    LOG_WARN_EVERY(ENGINE_WARN_INTERVAL_NS, "engine wake-up: %s", strerror(errno));
  }
}

/* The mutex goes to who asks first, and that would be the thread again. */
static void offer_lock(struct engine *engine) {
  for (int i = 0;
       i < LOCK_OFFERS && atomic_load_explicit(&engine->lock_waiters, memory_order_relaxed); i++) {
    sched_yield();
  }
}

/* Polls while there is something to do, and SPIN_NS longer, but for a hold. */
static void thread_work(struct engine *engine) {
  uint64_t now_ns = clock_now_ns(), end_ns = now_ns;
  while (now_ns <= end_ns && now_ns >= hold_end_ns(engine) && !atomic_load(&engine->is_stopping)) {
    engine_lock(engine);
    engine->sleeping_until_ns = 0;
    bool has_worked = engine_poll(engine);
    engine_unlock(engine);
    now_ns = clock_now_ns();
    if (has_worked) {
      end_ns = now_ns + (engine_is_polled(engine) ? 0 : SPIN_NS);
    } else {
      sched_yield();
    }
    offer_lock(engine);
  }
}

/* "stratus eth0", and "stratus eth0/1" for shards; the kernel keeps 15 characters. By the thread
 * itself: another one would open a file for it, which a child that is forked meanwhile keeps. */
static void name_thread(const struct engine *engine) {
  char name[16];
  if (engine->shard == 0) {
    snprintf(name, sizeof name, "stratus %.7s", engine->nic.name);
  } else {
    snprintf(name, sizeof name, "stratus %.*s/%u", engine->shard < 10 ? 5 : 4, engine->nic.name,
             engine->shard % 100);
  }
  pthread_setname_np(pthread_self(), name);
}

void *engine_thread(void *argument) {
  struct engine *engine = argument;
  name_thread(engine);
  while (!atomic_load(&engine->is_stopping)) {
    thread_sleep(engine);
    thread_work(engine);
  }
  return NULL;
}

void engine_end_thread(struct engine *engine) {
  atomic_store(&engine->is_stopping, true);
  wake_thread(engine);
  pthread_join(engine->thread, NULL);
}
