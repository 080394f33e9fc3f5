/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. Who moves the bytes, and why nothing is left lying about.
 *
 * The lock's holder does all work: NCCL's threads inline, the engine's own thread, or whoever else
 * needs the lock. Two things decide who does it when:
 *
 *   INLINE  NCCL's threads poll whenever they test; each poll stamps inline_ns. While the stamp is
 *           fresh the thread holds off: it sleeps on its wake-up descriptor alone, takes no lock,
 *           and looks at the stamp again when it will be old, or after HOLD_LOOK_NS. When it is,
 *           nobody polls, and the thread sleeps on the epoll set, too, until the next deadline. A
 *           stamp is old after INLINE_HOLD_NS; while NCCL waits for requests, after
 *           LONG_HOLD_NS: its threads will be back, and were only not given a CPU, which the
 *           thread would take from them, and the lock with it. So it is while all lanes are RDMA:
 *           what NICs bring can wait for NCCL, and would wake the thread each time.
 *   THREAD  NCCL's threads queue their posts and leave. The thread works; with nothing to do it
 *           looks again for SPIN_NS, then sleeps as above. NCCL's threads poll all the same if the
 *           thread has not been seen at work for STARVED_NS: it may not have been given a CPU.
 *
 * Asleep or not: sleeping_ns. The thread publishes it before it sleeps, then looks at the task
 * stack again; who leaves a task in THREAD mode pushes it, then looks at sleeping_ns. All four are
 * sequentially consistent, so one of the two sees what the other wrote: a task is never left to a
 * thread that sleeps. It says until when the thread sleeps, so that an earlier deadline wakes it
 * (engine_timer_set), 0 if it is awake, and ASLEEP_FOR_HOLD if it leaves deadlines to the pollers.
 * Whoever wakes it swaps in 0 first, so one does it, and writes the wake-up descriptor, which stays
 * readable until the thread itself reads it: it is not in the epoll set, where a poller would empty
 * it before the thread was given a CPU, and ppoll would go back to sleep.
 *
 * Every fact, and who is told of it:
 *   task, lock free    INLINE: the poster takes the lock and runs it. THREAD: as above.
 *   task, lock taken   It is in the stack before the poster tries the lock again; who unlocks looks
 *                      at the stack afterwards. One of the two finds it. So it is for a poster who
 *                      goes by an old mode; the thread also looks before each sleep.
 *   event              The epoll set stays readable until the event is dealt with, so a sleep on it
 *                      ends at once. In a hold pollers see it, or the thread does when it ends.
 *   deadline           next_deadline_ns is read, and sleeping_ns published, under the lock, under
 *                      which deadlines are set: the setter comes first and is seen, or second and
 *                      sees. In a hold pollers expire it, or the thread does when it ends.
 *   THREAD chosen      Wakes the thread whatever it sleeps for (engine_set_mode).
 *   INLINE chosen      The thread is awake, or asleep on everything. Nothing to tell.
 *   pollers stop       The hold ends when the last stamp that it saw is old; if a later one is
 *                      there then, it is followed by another.
 *   holder has no CPU  Nobody can work for it. So the thread takes no lock in a hold, and between
 *                      its rounds lets those who wait have the lock. */
#include "net_plugin/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/ablation.h"
#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/engine/engine_state.h"

#define INLINE_HOLD_NS (4 * NS_PER_MS)
#define LONG_HOLD_NS (200 * NS_PER_MS)
/* What NCCL waits for may be done at any time, and nobody tells the thread. */
#define HOLD_LOOK_NS (10 * NS_PER_MS)
#define STARVED_NS (4 * NS_PER_MS)
#define SPIN_NS (50 * NS_PER_US)
/* How often the thread offers the lock to somebody who waits for it. */
#define OFFERS 100
/* A value of sleeping_ns that no deadline is earlier than. */
#define ASLEEP_FOR_HOLD 1
#define LOOKS_PER_POLL 16              /* a power of two */
#define DIRECT_POLL_NS (4 * NS_PER_MS) /* instead, of who has only RDMA lanes */
#define QUIET_NS (500 * NS_PER_MS)
#define NAP_NS (200 * 1000)
#define LOOK_NS (50 * 1000) /* between naps */
#define STIRRED_GRAIN_NS (10 * NS_PER_MS)
/* What moved no bytes for so long has no say in the mode. */
#define STALE_NS (100 * NS_PER_MS)

struct meter *engine_meter(struct engine *engine) {
  return &engine->meter;
}

struct trial *engine_width(struct engine *engine) {
  return &engine->width;
}

struct engine_lists *engine_lists(struct engine *engine) {
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

enum drive_mode engine_mode(const struct engine *engine) {
  return (enum drive_mode)atomic_load_explicit(&engine->mode, memory_order_acquire);
}

/* Also if it is about to sleep. Between the two, others think that it is awake: it will be. */
static void wake_thread(struct engine *engine) {
  uint64_t one = 1;
  atomic_store(&engine->sleeping_ns, 0);
  if (write(engine->wake_fd, &one, sizeof one) < 0 && errno != EAGAIN) {
    LOG_WARN_EVERY(NS_PER_S, "engine wake-up: %s", strerror(errno));
  }
}

/* ---- tasks and the lock ---- */

bool engine_run_tasks(struct engine *engine) {
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

void engine_lock(struct engine *engine) {
  if (pthread_mutex_trylock(&engine->lock) != 0) {
    atomic_fetch_add(&engine->waiting, 1);
    pthread_mutex_lock(&engine->lock);
    atomic_fetch_sub(&engine->waiting, 1);
  }
}

void engine_unlock(struct engine *engine) {
  for (;;) {
    pthread_mutex_unlock(&engine->lock);
    if (!atomic_load(&engine->tasks) || pthread_mutex_trylock(&engine->lock) != 0) {
      return;
    }
    engine_run_tasks(engine);
  }
}

static bool is_inline(const struct engine *engine) {
  return engine_mode(engine) == DRIVE_INLINE;
}

static void push_task(struct engine *engine, struct engine_task *task) {
  if (!atomic_exchange(&task->is_queued, true)) {
    struct engine_task *top = atomic_load(&engine->tasks);
    do {
      task->next = top;
    } while (!atomic_compare_exchange_weak(&engine->tasks, &top, task));
  }
}

void engine_submit(struct engine *engine, struct engine_task *task) {
  if (!is_inline(engine)) {
    push_task(engine, task);
    if (atomic_load(&engine->sleeping_ns) && atomic_exchange(&engine->sleeping_ns, 0)) {
      wake_thread(engine);
    }
    return;
  }
  if (pthread_mutex_trylock(&engine->lock) == 0) {
    task->run(task);
    engine_unlock(engine); /* runs what was queued before, too */
    return;
  }
  push_task(engine, task);
  if (pthread_mutex_trylock(&engine->lock) == 0) {
    engine_run_tasks(engine);
    engine_unlock(engine);
  }
}

/* ---- watched descriptors ---- */

int engine_watch(struct engine *engine, struct engine_source *source, int fd, uint32_t events) {
  source->fd = fd;
  source->events = events;
  struct epoll_event event = { .events = events, .data.ptr = source };
  return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void engine_rewatch(struct engine *engine, struct engine_source *source, uint32_t events) {
  if (source->events != events) {
    source->events = events;
    struct epoll_event event = { .events = events, .data.ptr = source };
    epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
  }
}

void engine_unwatch(struct engine *engine, struct engine_source *source) {
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

static bool deliver_events(struct engine *engine) {
  int count = epoll_wait(engine->epoll_fd, engine->events, EVENTS_PER_ROUND, 0);
  engine->events_left = count > 0 ? count : 0;
  while (engine->events_left > 0) {
    struct epoll_event *event = &engine->events[--engine->events_left];
    struct engine_source *source = event->data.ptr;
    if (source) {
      source->ready(source, event->events);
    }
  }
  return count > 0;
}

/* ---- timers ---- */

void engine_timer_set(struct engine *engine, struct engine_timer *timer, uint64_t deadline_ns) {
  if (timer->deadline_ns == 0) {
    list_push_back(&engine->timers, &timer->node);
  }
  timer->deadline_ns = deadline_ns;
  if (deadline_ns < engine->next_deadline_ns) {
    engine->next_deadline_ns = deadline_ns;
    if (deadline_ns < atomic_load(&engine->sleeping_ns)) {
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

/* ---- the two drivers ---- */

bool engine_poll(struct engine *engine) {
  bool has_events = deliver_events(engine);
  bool has_tasks = engine_run_tasks(engine);
  engine->polled_ns = clock_now_ns();
  bool has_deadlines = expire_timers(engine, engine->polled_ns);
  return has_events || has_tasks || has_deadlines;
}

bool engine_is_turn(struct engine *engine, bool is_only_direct, uint64_t now_ns) {
  bool is_due = is_only_direct ? now_ns >= engine->polled_ns + DIRECT_POLL_NS
                               : ++engine->looks % LOOKS_PER_POLL == 0;
  return is_due || now_ns >= engine->next_deadline_ns || ablation_off(ABLATION_TURN) ||
         ablation_off(ABLATION_HOT);
}

void engine_leave_to_thread(struct engine *engine) {
  if (atomic_exchange_explicit(&engine->inline_ns, 0, memory_order_relaxed)) {
    wake_thread(engine);
  }
}

void engine_awaits(struct engine *engine, int change) {
  atomic_fetch_add_explicit(&engine->awaited, change, memory_order_relaxed);
}

/* Nobody but NCCL waits for what NICs bring by themselves. */
static bool has_only_queues(struct engine *engine) {
  return atomic_load(&engine->flows) == 0 && atomic_load(&engine->queues) > 0;
}

void engine_count_lanes(struct engine *engine, bool is_direct, int change) {
  bool had_only_queues = has_only_queues(engine);
  atomic_fetch_add(is_direct ? &engine->queues : &engine->flows, change);
  if (had_only_queues && !has_only_queues(engine)) {
    wake_thread(engine); /* it may have lain down for long */
  }
}

void engine_set_mode(struct engine *engine, enum drive_mode mode) {
  if (atomic_load(&engine->mode) != (int)mode) {
    atomic_store(&engine->mode, (int)mode);
    if (mode == DRIVE_THREAD) {
      wake_thread(engine);
    }
  }
}

/* When anything moved, or was posted, on any engine of the process; not exactly. */
static _Atomic uint64_t stirred_ns;

void engine_stirred(uint64_t now_ns) {
  if (now_ns > atomic_load_explicit(&stirred_ns, memory_order_relaxed) + STIRRED_GRAIN_NS) {
    atomic_store_explicit(&stirred_ns, now_ns, memory_order_relaxed);
  }
}

void engine_moved(struct engine *engine, bool is_direct, size_t bytes, uint64_t now_ns) {
  engine_stirred(now_ns);
  if (!engine->drive.can_switch) {
    return;
  }
  if (!is_direct) {
    trial_moved(&engine->drive, bytes, now_ns);
    engine_set_mode(engine, (enum drive_mode)engine->drive.way);
  } else if (!is_inline(engine) && now_ns >= engine->drive.last_ns + STALE_NS) {
    engine_set_mode(engine, DRIVE_INLINE);
  }
}

bool engine_progress_begin(struct engine *engine, uint64_t now_ns) {
  if (is_inline(engine)) {
    atomic_store_explicit(&engine->inline_ns, now_ns, memory_order_relaxed);
  } else if (now_ns < atomic_load_explicit(&engine->worked_ns, memory_order_relaxed) + STARVED_NS) {
    return false;
  }
  return pthread_mutex_trylock(&engine->lock) == 0;
}

bool engine_glance_begin(struct engine *engine) {
  return is_inline(engine) && pthread_mutex_trylock(&engine->lock) == 0;
}

/* NCCL's threads yield between their tests. Threads that do nothing else can keep ksoftirqd from
 * running on their CPU for ten seconds (Linux 6.18), and then nothing ever comes: it takes a sleep.
 */
void engine_nap(struct engine *engine, uint64_t now_ns) {
  uint64_t quiet_ns = atomic_load_explicit(&stirred_ns, memory_order_relaxed) + QUIET_NS;
  if (now_ns < quiet_ns || ablation_off(ABLATION_NAP) ||
      now_ns < atomic_load_explicit(&engine->napped_ns, memory_order_relaxed) + LOOK_NS) {
    return;
  }
  struct pollfd event = { .fd = engine->epoll_fd, .events = POLLIN };
  static const struct timespec nap = { .tv_nsec = NAP_NS };
  ppoll(&event, 1, &nap, NULL);
  atomic_store_explicit(&engine->napped_ns, clock_now_ns(), memory_order_relaxed);
}

void engine_progress(struct engine *engine) {
  if (engine_progress_begin(engine, clock_now_ns())) {
    engine_poll(engine);
    engine_unlock(engine);
  }
}

static uint64_t hold_end_ns(struct engine *engine) {
  uint64_t inline_ns = atomic_load_explicit(&engine->inline_ns, memory_order_relaxed);
  bool is_long =
      atomic_load_explicit(&engine->awaited, memory_order_relaxed) > 0 || has_only_queues(engine);
  is_long &= inline_ns > 0 && !ablation_off(ABLATION_LONG_HOLD); /* 0: engine_leave_to_thread */
  return inline_ns + (is_long ? LONG_HOLD_NS : INLINE_HOLD_NS);
}

static bool is_thread_turn(struct engine *engine, uint64_t now_ns) {
  return !is_inline(engine) || now_ns >= hold_end_ns(engine);
}

/* Says how long the thread is going to sleep: from here on it is woken for what comes earlier. */
static uint64_t lie_down(struct engine *engine, bool *is_hold) {
  uint64_t now_ns = clock_now_ns(), until_ns = hold_end_ns(engine);
  *is_hold = !is_thread_turn(engine, now_ns);
  if (*is_hold) {
    atomic_store(&engine->sleeping_ns, ASLEEP_FOR_HOLD);
    if (!has_only_queues(engine) && until_ns > now_ns + HOLD_LOOK_NS) {
      until_ns = now_ns + HOLD_LOOK_NS;
    }
  } else {
    engine_lock(engine);
    until_ns = engine->next_deadline_ns;
    atomic_store(&engine->sleeping_ns, until_ns);
    engine_unlock(engine);
  }
  return until_ns == NO_DEADLINE ? until_ns : until_ns > now_ns ? until_ns - now_ns : 0;
}

/* Sleeps until there may be work for the thread. */
static void thread_sleep(struct engine *engine) {
  bool is_hold;
  uint64_t wait_ns = lie_down(engine, &is_hold);
  if (!atomic_load(&engine->tasks)) {
    struct pollfd waited[] = { { .fd = engine->wake_fd, .events = POLLIN },
                               { .fd = engine->epoll_fd, .events = POLLIN } };
    struct timespec timeout = clock_timespec(wait_ns);
    ppoll(waited, is_hold ? 1 : 2, wait_ns == NO_DEADLINE ? NULL : &timeout, NULL);
    uint64_t count;
    if (waited[0].revents && read(engine->wake_fd, &count, sizeof count) < 0) {
      LOG_WARN_EVERY(NS_PER_S, "engine wake-up: %s", strerror(errno));
    }
  } else {
    engine_lock(engine);
    engine_unlock(engine); /* runs them, or the next holder does */
  }
  atomic_store(&engine->sleeping_ns, 0);
}

/* The mutex goes to who asks first, and that would be the thread again. */
static void offer_lock(struct engine *engine) {
  if (ablation_off(ABLATION_OFFER)) {
    return;
  }
  for (int i = 0; i < OFFERS && atomic_load_explicit(&engine->waiting, memory_order_relaxed); i++) {
    sched_yield();
  }
}

/* Works for as long as it is the thread's turn and there is something to do. */
static void thread_work(struct engine *engine) {
  uint64_t now_ns = clock_now_ns(), busy_ns = now_ns;
  while (is_thread_turn(engine, now_ns) && !atomic_load(&engine->is_stopping)) {
    engine_lock(engine);
    bool has_worked = engine_poll(engine);
    engine_unlock(engine);
    now_ns = clock_now_ns();
    atomic_store_explicit(&engine->worked_ns, now_ns, memory_order_relaxed);
    if (has_worked) {
      busy_ns = now_ns;
    } else if (is_inline(engine) || now_ns >= busy_ns + SPIN_NS) {
      return;
    } else {
      sched_yield();
    }
    offer_lock(engine);
  }
}

void *engine_thread(void *argument) {
  struct engine *engine = argument;
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
