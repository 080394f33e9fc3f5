/* SPDX-License-Identifier: Apache-2.0 */
/* See thread.h. */
#include "common/thread.h"

#include <signal.h>
#include <time.h>

/* Synchronous signals stay unblocked, so that the application's handler can print a stack or write
 * a core: if blocked, the kernel kills the process without calling it. */
static const int own_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  for (size_t i = 0; i < sizeof own_faults / sizeof *own_faults; i++) {
    sigdelset(&all, own_faults[i]);
  }
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return -error;
}

void thread_init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}
