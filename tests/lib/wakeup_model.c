/* SPDX-License-Identifier: Apache-2.0 */
/* See wakeup_model.h. */
#include "tests/lib/wakeup_model.h"

#include <stddef.h>

/* X(step, the code that it stands for). A step that needs the lock and is not given it waits. */
#define STEPS(X)                                                                                   \
  X(DONE, "is done")                                                                               \
  X(UNLOCK, "engine_unlock: pthread_mutex_unlock")                                                 \
  X(UNLOCK_LOOK, "engine_unlock: atomic_load(tasks)")                                              \
  X(UNLOCK_RETRY, "engine_unlock: engine_try_lock")                                                \
  X(TASKS_TAKE, "engine_run_tasks: atomic_exchange(tasks)")                                        \
  X(TASKS_UNQUEUE, "engine_run_tasks: atomic_exchange(is_queued)")                                 \
  X(TASKS_RUN, "engine_run_tasks: task->run")                                                      \
  X(POST, "connection_post: atomic_store(posted)")                                                 \
  X(SUBMIT_TRY, "engine_submit: engine_try_lock")                                                  \
  X(SUBMIT_RUN, "engine_submit: task->run")                                                        \
  X(SUBMIT_MARK, "engine_submit: atomic_exchange(is_queued)")                                      \
  X(SUBMIT_PUSH, "engine_submit: atomic_compare_exchange(tasks)")                                  \
  X(SUBMIT_RETRY, "engine_submit: engine_try_lock again")                                          \
  X(PROGRESS_STAMP, "engine_progress_begin: atomic_store(nccl_polled_ns)")                         \
  X(PROGRESS_TRY, "engine_progress_begin: engine_try_lock")                                        \
  X(POLL_EVENTS, "engine_poll: epoll_wait")                                                        \
  X(POLL_TIMERS, "engine_poll: expire_timers")                                                     \
  X(TIMER_SET, "engine_lock, engine_timer_set: next_deadline_ns, sleeping_until_ns")               \
  X(TIMER_WAKE, "engine_timer_set: wake_thread")                                                   \
  X(LEAVE_SWAP, "engine_leave_to_thread: atomic_exchange(nccl_polled_ns)")                         \
  X(LEAVE_WAKE, "engine_leave_to_thread: wake_thread")                                             \
  X(END_STOP, "engine_end_thread: atomic_store(is_stopping)")                                      \
  X(END_WAKE, "engine_end_thread: wake_thread")                                                    \
  X(END_JOIN, "engine_end_thread: pthread_join")                                                   \
  X(THREAD_LOOP, "engine_thread: atomic_load(is_stopping)")                                        \
  X(SLEEP_HOLD, "prepare_sleep: hold_end_ns")                                                      \
  X(SLEEP_PUBLISH, "prepare_sleep: engine_lock, next_deadline_ns, sleeping_until_ns")              \
  X(SLEEP, "thread_sleep: ppoll")                                                                  \
  X(SLEEP_DRAIN, "thread_sleep: read(wake_fd)")                                                    \
  X(WORK_HOLD, "thread_work: hold_end_ns, is_stopping")                                            \
  X(WORK_LOCK, "thread_work: engine_lock, sleeping_until_ns")

enum step {
#define STEP_ID(id, text) id,
  STEPS(STEP_ID)
};
static const char *const step_texts[] = {
#define STEP_TEXT(id, text) [id] = text,
  STEPS(STEP_TEXT)
};

static const char *const actor_names[] = { "thread", "poster", "poster 2", "poller",
                                           "timer",  "leaver", "ender" };

static const struct wakeup_scene *scene;
static enum broken broken;

/* ---- the steps; each changes the state, or returns false: it has to wait ---- */

static void go(struct wakeup_state *s, unsigned who, enum step step) {
  s->actors[who].step = (uint8_t)step;
}

static void unlock_to(struct wakeup_state *s, unsigned who, enum step after) {
  s->actors[who].after_unlock = (uint8_t)after;
  go(s, who, UNLOCK);
}

static void run_tasks_to(struct wakeup_state *s, unsigned who, enum step after) {
  s->actors[who].after_tasks = (uint8_t)after;
  go(s, who, TASKS_TAKE);
}

/* The next round of the actor, or its end. */
static enum step begin(struct wakeup_state *s, unsigned who) {
  static const enum step first[ACTORS] = { THREAD_LOOP, POST,       POST,    PROGRESS_STAMP,
                                           TIMER_SET,   LEAVE_SWAP, END_STOP };
  uint8_t *rounds = &s->actors[who].rounds;
  if (who == THREAD) {
    return THREAD_LOOP;
  }
  if (*rounds == 0) {
    return DONE;
  }
  --*rounds;
  return first[who];
}

static bool try_lock(struct wakeup_state *s, unsigned who) {
  if (s->holder != NOBODY) {
    return false;
  }
  s->holder = (uint8_t)who;
  return true;
}

static bool step_unlock(struct wakeup_state *s, unsigned who) {
  enum step after = s->actors[who].after_unlock;
  bool is_over = false;
  switch ((enum step)s->actors[who].step) {
  case UNLOCK:
    s->holder = NOBODY;
    is_over = broken == NO_LOOK_AFTER_UNLOCK;
    go(s, who, UNLOCK_LOOK);
    break;
  case UNLOCK_LOOK:
    is_over = s->stack == 0;
    go(s, who, UNLOCK_RETRY);
    break;
  default: /* UNLOCK_RETRY */
    is_over = !try_lock(s, who);
    run_tasks_to(s, who, UNLOCK);
  }
  if (is_over) {
    s->actors[who].after_unlock = s->actors[who].after_tasks = 0;
    go(s, who, after == DONE ? begin(s, who) : after);
  }
  return true;
}

static bool step_tasks(struct wakeup_state *s, unsigned who) {
  uint8_t *batch = &s->actors[who].batch;
  switch ((enum step)s->actors[who].step) {
  case TASKS_TAKE:
    *batch = s->stack;
    s->stack = 0;
    s->has_worked |= who == THREAD && *batch;
    go(s, who, *batch ? TASKS_UNQUEUE : s->actors[who].after_tasks);
    break;
  case TASKS_UNQUEUE:
    if (broken == UNQUEUED_AFTER_RUN) {
      s->unseen &= (uint8_t) ~*batch;
    } else {
      s->queued &= (uint8_t) ~*batch;
    }
    go(s, who, TASKS_RUN);
    break;
  default: /* TASKS_RUN */
    if (broken == UNQUEUED_AFTER_RUN) {
      s->queued &= (uint8_t) ~*batch;
    } else {
      s->unseen &= (uint8_t) ~*batch;
    }
    *batch = 0;
    go(s, who, s->actors[who].after_tasks);
  }
  return true;
}

static bool step_submit(struct wakeup_state *s, unsigned who) {
  unsigned bit = 1u << (who - POSTER);
  switch ((enum step)s->actors[who].step) {
  case POST:
    s->unseen |= (uint8_t)bit;
    go(s, who, SUBMIT_TRY);
    break;
  case SUBMIT_TRY:
    go(s, who, try_lock(s, who) ? SUBMIT_RUN : SUBMIT_MARK);
    break;
  case SUBMIT_RUN:
    s->unseen &= (uint8_t)~bit;
    unlock_to(s, who, DONE);
    break;
  case SUBMIT_MARK:
    go(s, who, s->queued & bit ? SUBMIT_RETRY : SUBMIT_PUSH);
    s->queued |= (uint8_t)bit;
    break;
  case SUBMIT_PUSH:
    s->stack |= (uint8_t)bit;
    go(s, who, broken == NO_RETRY_AFTER_PUSH ? begin(s, who) : SUBMIT_RETRY);
    break;
  default: /* SUBMIT_RETRY */
    if (try_lock(s, who)) {
      run_tasks_to(s, who, UNLOCK);
    } else {
      go(s, who, begin(s, who));
    }
  }
  return true;
}

/* What engine_poll does, for the poller and the thread. */
static bool step_poll(struct wakeup_state *s, unsigned who) {
  switch ((enum step)s->actors[who].step) {
  case PROGRESS_STAMP:
    if (scene->is_inline) {
      s->stamp = FRESH;
    }
    go(s, who, PROGRESS_TRY);
    break;
  case PROGRESS_TRY:
    go(s, who, try_lock(s, who) ? POLL_EVENTS : begin(s, who));
    break;
  case POLL_EVENTS:
    s->has_worked |= who == THREAD && s->events;
    s->events = 0;
    if (broken == POLLER_READS_WAKE_FD) {
      s->wake = 0;
    }
    run_tasks_to(s, who, POLL_TIMERS);
    break;
  default: /* POLL_TIMERS */
    if (s->deadline == 0) {
      s->deadline = NEVER;
      s->has_worked |= who == THREAD;
    }
    unlock_to(s, who, who == POLLER ? DONE : s->has_worked ? WORK_HOLD : THREAD_LOOP);
  }
  return true;
}

static bool step_timer(struct wakeup_state *s) {
  if (s->actors[TIMER].step == TIMER_WAKE) {
    s->wake = 1;
    unlock_to(s, TIMER, DONE);
    return true;
  }
  if (!try_lock(s, TIMER)) {
    return false;
  }
  uint8_t deadline = (uint8_t)(1 + s->actors[TIMER].rounds);
  s->deadline = deadline < s->deadline ? deadline : s->deadline;
  if (s->deadline < s->sleeping_until && broken != NO_WAKE_BY_TIMER) {
    s->sleeping_until = 0;
    go(s, TIMER, TIMER_WAKE);
  } else {
    unlock_to(s, TIMER, DONE);
  }
  return true;
}

static bool step_leave(struct wakeup_state *s) {
  if (s->actors[LEAVER].step == LEAVE_WAKE) {
    s->wake = 1;
    unlock_to(s, LEAVER, DONE);
    return true;
  }
  if (!try_lock(s, LEAVER)) {
    return false;
  }
  if (s->stamp != NONE && broken != NO_WAKE_BY_LEAVING) {
    go(s, LEAVER, LEAVE_WAKE);
  } else {
    unlock_to(s, LEAVER, DONE);
  }
  s->stamp = NONE;
  return true;
}

static bool step_end(struct wakeup_state *s) {
  switch ((enum step)s->actors[ENDER].step) {
  case END_STOP:
    s->is_stopping = 1;
    go(s, ENDER, broken == NO_WAKE_BY_END ? END_JOIN : END_WAKE);
    return true;
  case END_WAKE:
    s->wake = 1;
    go(s, ENDER, END_JOIN);
    return true;
  default: /* END_JOIN */
    if (s->actors[THREAD].step != DONE) {
      return false;
    }
    go(s, ENDER, DONE);
    return true;
  }
}

static bool step_prepare_sleep(struct wakeup_state *s) {
  switch ((enum step)s->actors[THREAD].step) {
  case THREAD_LOOP:
    s->until = s->is_hold = s->has_worked = 0;
    go(s, THREAD, s->is_stopping ? DONE : SLEEP_HOLD);
    break;
  case SLEEP_HOLD:
    s->is_hold = s->stamp == FRESH;
    s->until = broken == HOLD_HAS_NO_END ? NEVER : 1;
    if (!s->is_hold) {
      s->until = broken == DEADLINE_READ_UNLOCKED ? s->deadline : NEVER;
    }
    go(s, THREAD, s->is_hold ? SLEEP : SLEEP_PUBLISH);
    break;
  default: /* SLEEP_PUBLISH */
    if (!try_lock(s, THREAD)) {
      return false;
    }
    if (broken != NO_DEADLINE_BEFORE_SLEEP && broken != DEADLINE_READ_UNLOCKED) {
      s->until = s->deadline;
    }
    s->sleeping_until = s->until;
    unlock_to(s, THREAD, SLEEP);
  }
  return true;
}

/* What ends ppoll. */
static bool is_woken(const struct wakeup_state *s) {
  bool has_event = s->events && !s->is_hold && broken != EVENTS_NOT_WATCHED;
  return s->wake || has_event || s->until == 0;
}

static bool step_thread(struct wakeup_state *s) {
  switch ((enum step)s->actors[THREAD].step) {
  case SLEEP:
    if (!is_woken(s)) {
      return false;
    }
    s->until = s->is_hold = 0;
    go(s, THREAD, s->wake ? SLEEP_DRAIN : WORK_HOLD);
    break;
  case SLEEP_DRAIN:
    s->wake = broken == WAKE_FD_IS_NOT_READ;
    go(s, THREAD, WORK_HOLD);
    break;
  case WORK_HOLD:
    s->has_worked = 0;
    go(s, THREAD, s->stamp == FRESH || s->is_stopping ? THREAD_LOOP : WORK_LOCK);
    break;
  case WORK_LOCK:
    if (!try_lock(s, THREAD)) {
      return false;
    }
    s->sleeping_until = 0;
    go(s, THREAD, POLL_EVENTS);
    break;
  default:
    return step_prepare_sleep(s);
  }
  return true;
}

static bool step_actor(struct wakeup_state *s, unsigned who) {
  enum step step = s->actors[who].step;
  if (step == DONE) {
    return false;
  }
  if (step <= UNLOCK_RETRY) {
    return step_unlock(s, who);
  }
  if (step <= TASKS_RUN) {
    return step_tasks(s, who);
  }
  if (step <= SUBMIT_RETRY) {
    return step_submit(s, who);
  }
  if (step <= POLL_TIMERS) {
    return step_poll(s, who);
  }
  if (step <= TIMER_WAKE) {
    return step_timer(s);
  }
  if (step <= LEAVE_WAKE) {
    return step_leave(s);
  }
  return step <= END_JOIN ? step_end(s) : step_thread(s);
}

static bool pass_one(uint8_t *ticks) {
  bool is_waited_for = *ticks > 0 && *ticks != NEVER;
  *ticks -= is_waited_for;
  return is_waited_for;
}

/* A stamp is stale after one tick. Nothing happens if nothing waits for time. */
static bool pass_time(struct wakeup_state *s) {
  bool is_waited_for = s->stamp == FRESH;
  s->stamp = is_waited_for ? STALE : s->stamp;
  is_waited_for |= pass_one(&s->deadline);
  is_waited_for |= pass_one(&s->sleeping_until);
  is_waited_for |= pass_one(&s->until);
  return is_waited_for;
}

bool wakeup_move(struct wakeup_state *s, unsigned who) {
  if (who < ACTORS) {
    return step_actor(s, who);
  }
  if (who == EVENT) {
    bool comes = s->events_left > 0;
    s->events_left -= comes;
    s->events |= comes;
    return comes;
  }
  return pass_time(s);
}

/* ---- what must hold ---- */

const char *wakeup_fault(const struct wakeup_state *s, bool is_final) {
  enum step thread = s->actors[THREAD].step;
  if (thread == SLEEP && !is_woken(s) && s->holder == NOBODY) {
    if (!s->is_hold && s->until > s->deadline) {
      return "a deadline is slept through";
    }
    if (s->is_hold && s->stamp == NONE) {
      return "the thread keeps off what was left to it";
    }
  }
  if (!is_final) {
    return NULL;
  }
  for (unsigned who = POSTER; who < ACTORS; who++) {
    if (s->actors[who].step != DONE) {
      return "somebody waits for ever";
    }
  }
  if (s->is_stopping ? thread != DONE : thread != SLEEP) {
    return "the thread waits for ever";
  }
  if (s->unseen) {
    return "a task is left";
  }
  if (!s->is_stopping && s->events) {
    return "an event is left";
  }
  return !s->is_stopping && s->deadline != NEVER ? "a deadline is left" : NULL;
}

struct wakeup_state wakeup_begin(const struct wakeup_scene *chosen, enum broken rule) {
  struct wakeup_state start = { .holder = NOBODY,
                                .deadline = NEVER,
                                .events_left = chosen->events };
  scene = chosen;
  broken = rule;
  for (unsigned who = 0; who < ACTORS; who++) {
    start.actors[who].rounds = chosen->rounds[who];
    go(&start, who, begin(&start, who));
  }
  return start;
}

const char *wakeup_actor_name(unsigned who) {
  return who == EVENT ? "event" : who == TIME ? "time" : actor_names[who];
}

const char *wakeup_step_text(const struct wakeup_state *state, unsigned who) {
  return who == EVENT ? "comes" : who == TIME ? "passes" : step_texts[state->actors[who].step];
}
