/* SPDX-License-Identifier: Apache-2.0 */
/* See thread.h. */
#include "common/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return -error;
}
