/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. The hand-over between the engine's thread and NCCL's threads:
 *
 *   nobody polls   the thread sleeps on the epoll set itself (poll on its descriptor), until an
 * event, the next deadline, or a wake-up; then takes the lock and works. NCCL polls engine_progress
 * stamps inline_ns at every call. As long as the stamp is fresh, the thread sleeps on the wake-up
 * descriptor alone, and looks again INLINE_HOLD_NS later.
 *
 * Any thread that finds the lock taken leaves its work in the task stack; who unlocks looks there
 * last, so nothing is left behind. */
#include "net_plugin/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/param.h"
#include "net_plugin/engine/observer.h"

#define INLINE_HOLD_NS (4 * NS_PER_MS)
#define EVENTS_PER_ROUND 64
#define NO_DEADLINE UINT64_MAX

struct engine {
  struct nic nic;
  pthread_mutex_t lock;
  int epoll_fd;
  struct engine_source wake; /* eventfd, watched by the epoll set */
  pthread_t thread;
  bool is_inline_allowed;
  atomic_bool is_stopping;
  _Atomic uint64_t inline_ns;   /* when a thread of NCCL last polled */
  _Atomic uint64_t sleeping_ns; /* the thread sleeps until then; 0: it is awake */
  _Atomic(struct engine_task *) tasks;

  /* the rest is guarded by the lock */
  struct list timers;
  uint64_t next_deadline_ns; /* never later than the earliest timer */
  struct epoll_event events[EVENTS_PER_ROUND];
  int events_left; /* of the round being delivered */
  struct engine_lists lists;
  struct list_node node;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list registry = { { &registry.head, &registry.head } };
static void (*stop_hook)(struct engine *engine);

struct engine_lists *engine_lists(struct engine *engine) {
  return &engine->lists;
}

void engine_on_stop(void (*stop)(struct engine *engine)) {
  stop_hook = stop;
}

/* ---- tasks and the lock ---- */

void engine_run_tasks(struct engine *engine) {
  struct engine_task *stack = atomic_exchange(&engine->tasks, NULL);
  while (stack) {
    struct engine_task *task = stack;
    stack = task->next;
    atomic_store(&task->is_queued, false);
    task->run(task);
  }
}

void engine_lock(struct engine *engine) {
  pthread_mutex_lock(&engine->lock);
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

void engine_submit(struct engine *engine, struct engine_task *task) {
  if (engine->is_inline_allowed && pthread_mutex_trylock(&engine->lock) == 0) {
    task->run(task);
    engine_unlock(engine); /* runs what was queued before, too */
    return;
  }
  if (!atomic_exchange(&task->is_queued, true)) {
    struct engine_task *top = atomic_load(&engine->tasks);
    do {
      task->next = top;
    } while (!atomic_compare_exchange_weak(&engine->tasks, &top, task));
  }
  if (!engine->is_inline_allowed) {
    uint64_t one = 1;
    if (write(engine->wake.fd, &one, sizeof one) < 0) {
      LOG_TRACE("wake-up is pending already");
    }
  } else if (pthread_mutex_trylock(&engine->lock) == 0) {
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

static void deliver_events(struct engine *engine) {
  int count = epoll_wait(engine->epoll_fd, engine->events, EVENTS_PER_ROUND, 0);
  engine->events_left = count > 0 ? count : 0;
  while (engine->events_left > 0) {
    struct epoll_event *event = &engine->events[--engine->events_left];
    struct engine_source *source = event->data.ptr;
    if (source) {
      source->ready(source, event->events);
    }
  }
}

static void wake_ready(struct engine_source *source, uint32_t epoll_events) {
  (void)epoll_events;
  uint64_t count;
  if (read(source->fd, &count, sizeof count) < 0 && errno != EAGAIN) {
    LOG_WARN_EVERY(NS_PER_S, "engine wake-up: %s", strerror(errno));
  }
}

static void wake_thread(struct engine *engine) {
  uint64_t one = 1;
  if (write(engine->wake.fd, &one, sizeof one) < 0 && errno != EAGAIN) {
    LOG_WARN_EVERY(NS_PER_S, "engine wake-up: %s", strerror(errno));
  }
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
      atomic_store(&engine->sleeping_ns, 0);
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

static void expire_timers(struct engine *engine, uint64_t now_ns) {
  if (now_ns < engine->next_deadline_ns) {
    return;
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
    timer->deadline_ns = 0;
    timer->expired(timer, now_ns);
  }
}

/* ---- the two drivers ---- */

void engine_poll(struct engine *engine) {
  deliver_events(engine);
  engine_run_tasks(engine);
  expire_timers(engine, clock_now_ns());
}

void engine_leave_to_thread(struct engine *engine) {
  if (atomic_exchange_explicit(&engine->inline_ns, 0, memory_order_relaxed)) {
    wake_thread(engine);
  }
}

bool engine_progress_begin(struct engine *engine, uint64_t now_ns) {
  if (!engine->is_inline_allowed) {
    return false;
  }
  atomic_store_explicit(&engine->inline_ns, now_ns, memory_order_relaxed);
  return pthread_mutex_trylock(&engine->lock) == 0;
}

void engine_progress(struct engine *engine) {
  if (engine_progress_begin(engine, clock_now_ns())) {
    engine_poll(engine);
    engine_unlock(engine);
  }
}

/* Sleeps until there may be work for the thread. */
static void thread_sleep(struct engine *engine) {
  engine_lock(engine);
  uint64_t until_ns = engine->next_deadline_ns;
  atomic_store(&engine->sleeping_ns, until_ns);
  engine_unlock(engine);

  uint64_t now_ns = clock_now_ns();
  uint64_t hold_ns = atomic_load(&engine->inline_ns) + INLINE_HOLD_NS;
  bool is_polled = now_ns < hold_ns;
  struct pollfd waited = { .fd = is_polled ? engine->wake.fd : engine->epoll_fd, .events = POLLIN };
  if (is_polled) {
    until_ns = hold_ns;
  }
  uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  struct timespec timeout = { .tv_sec = (time_t)(wait_ns / NS_PER_S),
                              .tv_nsec = (long)(wait_ns % NS_PER_S) };
  ppoll(&waited, 1, until_ns == NO_DEADLINE ? NULL : &timeout, NULL);
  atomic_store(&engine->sleeping_ns, 0);
}

static void *thread_main(void *argument) {
  struct engine *engine = argument;
  while (!atomic_load(&engine->is_stopping)) {
    thread_sleep(engine);
    if (clock_now_ns() >= atomic_load(&engine->inline_ns) + INLINE_HOLD_NS) {
      engine_lock(engine);
      engine_poll(engine);
      engine_unlock(engine);
    } else {
      wake_ready(&engine->wake, EPOLLIN); /* the wake-up was for the sleep just ended */
    }
  }
  return NULL;
}

/* ---- life ---- */

/* Signals belong to the program's own threads. */
static int start_thread(struct engine *engine) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&engine->thread, NULL, thread_main, engine);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error) {
    return -error;
  }
  char name[16];
  snprintf(name, sizeof name, "stratus %.7s", engine->nic.name);
  pthread_setname_np(engine->thread, name);
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

static int engine_new(const struct nic *nic, struct engine **result) {
  struct engine *engine = calloc(1, sizeof *engine);
  if (!engine) {
    return -ENOMEM;
  }
  engine->nic = *nic;
  engine->is_inline_allowed = param_enum(PARAM_PROGRESS) != PARAM_PROGRESS_THREAD;
  engine->next_deadline_ns = NO_DEADLINE;
  pthread_mutex_init(&engine->lock, NULL);
  list_init(&engine->timers);
  list_init(&engine->lists.connections);
  list_init(&engine->lists.ports);
  list_init(&engine->lists.listeners);
  engine->wake.ready = wake_ready;
  int error = 0;
  engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (engine->epoll_fd < 0 || wake_fd < 0) {
    error = -errno;
  } else {
    error = engine_watch(engine, &engine->wake, wake_fd, EPOLLIN);
  }
  if (!error) {
    error = start_thread(engine);
  }
  if (error) {
    close(engine->epoll_fd);
    close(wake_fd);
    free(engine);
    LOG_WARN("cannot start the engine of %s: %s (limits: ulimit -n, ulimit -u)", nic->name,
             strerror(-error));
    return error;
  }
  *result = engine;
  return 0;
}

int engine_get(const struct nic *nic, struct engine **result) {
  pthread_mutex_lock(&registry_lock);
  int error = 0;
  *result = NULL;
  LIST_FOR_EACH(node, &registry) {
    struct engine *engine = LIST_ENTRY(node, struct engine, node);
    if (strcmp(engine->nic.name, nic->name) == 0) {
      *result = engine;
      break;
    }
  }
  if (!*result) {
    error = engine_new(nic, result);
    if (!error) {
      list_push_back(&registry, &(*result)->node);
      engine_lock(*result);
      engine_observer()->engine_started(*result);
      engine_unlock(*result);
    }
  }
  pthread_mutex_unlock(&registry_lock);
  return error;
}

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
  } else if (engine && pthread_mutex_trylock(&engine->lock) == 0) {
    visit(engine, argument);
    engine_unlock(engine);
  } else if (engine) {
    error = -EAGAIN;
  }
  pthread_mutex_unlock(&registry_lock);
  return error;
}

const struct nic *engine_nic(const struct engine *engine) {
  return &engine->nic;
}

static void wait_for_goodbyes(struct engine *engine, uint64_t until_ns) {
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

static void engine_free(struct engine *engine) {
  atomic_store(&engine->is_stopping, true);
  wake_thread(engine);
  pthread_join(engine->thread, NULL);
  engine_lock(engine);
  if (stop_hook) {
    stop_hook(engine);
  }
  engine_observer()->engine_stopping(engine);
  engine_unlock(engine);
  close(engine->wake.fd);
  close(engine->epoll_fd);
  pthread_mutex_destroy(&engine->lock);
  free(engine);
}

void engine_stop_all(uint64_t linger_ns) {
  uint64_t until_ns = clock_now_ns() + linger_ns;
  pthread_mutex_lock(&registry_lock);
  struct list_node *node;
  while ((node = list_pop_front(&registry))) {
    struct engine *engine = LIST_ENTRY(node, struct engine, node);
    wait_for_goodbyes(engine, until_ns);
    engine_free(engine);
  }
  pthread_mutex_unlock(&registry_lock);
}
