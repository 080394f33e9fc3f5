/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_guard.h. The child's handler calls what is async-signal-safe only. */
#include "common/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include "common/descriptor.h"

bool fork_guard_is_forked;

static void in_child(void) {
  descriptor_close_in_child();
  fork_guard_is_forked = true;
}

static void install(void) {
  pthread_atfork(descriptor_before_fork, descriptor_after_fork, in_child);
}

void fork_guard_install(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
}

bool fork_guard_refuses(void) {
  static bool is_told;
  static const char text[] = "stratus: this process was forked from one that uses NCCL, and cannot "
                             "use its communicators; use spawn or exec instead of fork\n";
  if (fork_guard_is_forked && !is_told) {
    is_told = true;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written; /* nothing can be done about it */
  }
  return fork_guard_is_forked;
}
