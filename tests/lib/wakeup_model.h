/* SPDX-License-Identifier: Apache-2.0 */
/* wakeup_model: how engine.c hands work over, as atomic steps of the threads that take part. Each
 * step names the code that it stands for; what only the lock's holder reads and writes is one step
 * with what comes before it. Spinning is left out: its rounds are steps that find nothing. Atomics
 * are sequentially consistent, as in engine.c. That the stack is read after the lock was given back
 * holds on x86-64 and AArch64, where pthread_mutex_unlock is a read-modify-write that later atomic
 * loads do not pass.
 * Owns: nothing.  Threads: one.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_WAKEUP_MODEL_H
#define TESTS_LIB_WAKEUP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Rules that a test breaks, to see that the checker finds it. */
enum broken {
  NOTHING,
  NO_LOOK_AFTER_UNLOCK,
  NO_RETRY_AFTER_PUSH,
  UNQUEUED_AFTER_RUN,
  NO_DEADLINE_BEFORE_SLEEP,
  DEADLINE_READ_UNLOCKED,
  NO_WAKE_BY_TIMER,
  NO_WAKE_BY_LEAVING,
  NO_WAKE_BY_END,
  POLLER_READS_WAKE_FD,
  HOLD_HAS_NO_END,
  EVENTS_NOT_WATCHED,
  WAKE_FD_IS_NOT_READ,
};

enum { THREAD, POSTER, POSTER_2, POLLER, TIMER, LEAVER, ENDER, ACTORS, NOBODY = ACTORS };
enum { NEVER = 255, NONE = 0, STALE = 1, FRESH = 2 };

/* All bytes, so that states can be compared and hashed. Times are ticks from now: 0 has come. */
struct wakeup_state {
  uint8_t holder;
  uint8_t stack, queued, unseen;           /* tasks: bits; unseen: posted, and not run since */
  uint8_t events, events_left;             /* readable; still to come */
  uint8_t deadline, sleeping_until, stamp; /* stamp: NONE, STALE, FRESH */
  uint8_t wake, is_stopping;               /* wake: wake_fd is readable */
  uint8_t until, is_hold, has_worked;      /* the thread's */
  struct {
    uint8_t step, rounds, batch; /* rounds to go; tasks taken from the stack */
    uint8_t after_tasks, after_unlock;
  } actors[ACTORS];
};

/* Who takes part, how often. */
struct wakeup_scene {
  const char *name;
  bool is_inline;
  uint8_t rounds[ACTORS];
  uint8_t events;
};
/* An event comes, or time passes: moves, beside those of the actors. */
enum { EVENT = ACTORS, TIME, MOVES };

/* The state that the scene begins with. The rule, and the scene, hold until the next call. */
struct wakeup_state wakeup_begin(const struct wakeup_scene *scene, enum broken rule);
/* Takes the actor's next step. False: it has none, or has to wait. */
bool wakeup_move(struct wakeup_state *state, unsigned who);
/* NULL, or what is wrong with the state. is_final: nobody can take a step any more. */
const char *wakeup_fault(const struct wakeup_state *state, bool is_final);
/* For messages: who moves, and the code of the next step. */
const char *wakeup_actor_name(unsigned who);
const char *wakeup_step_text(const struct wakeup_state *state, unsigned who);

#endif
