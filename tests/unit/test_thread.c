/* SPDX-License-Identifier: Apache-2.0 */
/* thread: the program's signals stay the program's, and faults of our threads reach its handlers.
 */
#include "common/thread.h"

#include <signal.h>

#include "tests/lib/unit.h"

static void *read_mask(void *argument) {
  pthread_sigmask(SIG_SETMASK, NULL, argument);
  return NULL;
}

UNIT_TEST(only_its_own_faults_reach_a_thread) {
  static const int others[] = {
    SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM, SIGIO
  };
  static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
  sigset_t mask, before, after;
  pthread_t thread;
  sigemptyset(&mask);
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  assert_int_equal(thread_start(&thread, read_mask, &mask), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_int_equal(sigismember(&mask, others[i]), 1);
  }
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    assert_int_equal(sigismember(&mask, faults[i]), 0);
  }
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  assert_int_equal(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
}

UNIT_MAIN(NULL, NULL)
