/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog: polls 20 times a second, whose cost is negligible in a measurement. */
#include "tests/coll/watchdog.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"

enum { COMMS_MAX = 128, LOOK_EVERY_MS = 50 };

static struct {
  pthread_mutex_t mutex; /* covers all below */
  pthread_cond_t stop;
  bool is_stopped;
  char place[160];
  ncclComm_t comms[COMMS_MAX];
  int comms_count;
  pthread_t thread;
  struct rendezvous *rendezvous;
  uint64_t timeout_ns, deadline_ns;
  uint64_t grace_ns, lost_ns; /* lost_ns: when a process was first seen to be gone */
} watchdog = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void watchdog_poll_comm(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  if (libs.ncclCommGetAsyncError(comm, &error) != ncclSuccess || error == ncclSuccess ||
      error == ncclInProgress)
    return;
  const char *detail = libs.ncclGetLastError(comm);
  message_fail("NCCL failed during %s: %s%s%s", watchdog.place, libs.ncclGetErrorString(error),
               detail && *detail ? ": " : "", detail ? detail : "");
}

static void watchdog_poll(void) {
  for (int i = 0; i < watchdog.comms_count; i++)
    watchdog_poll_comm(watchdog.comms[i]);
  int lost = rendezvous_find_lost(watchdog.rendezvous);
  if (lost >= 0 && !watchdog.lost_ns)
    watchdog.lost_ns = clock_now_ns();
  if (lost >= 0 && clock_now_ns() >= watchdog.lost_ns + watchdog.grace_ns)
    message_fail("%s is gone; this rank was at %s", rendezvous_name(watchdog.rendezvous, lost),
                 watchdog.place);
  if (watchdog.timeout_ns && clock_now_ns() > watchdog.deadline_ns)
    message_fail("no time left (--timeout, %.6g s); this rank was at %s",
                 (double)watchdog.timeout_ns / 1e9, watchdog.place);
}

static void *run(void *unused) {
  pthread_mutex_lock(&watchdog.mutex);
  while (!watchdog.is_stopped) {
    watchdog_poll();
    struct timespec until = clock_timespec(clock_now_ns() + LOOK_EVERY_MS * NS_PER_MS);
    pthread_cond_timedwait(&watchdog.stop, &watchdog.mutex, &until);
  }
  pthread_mutex_unlock(&watchdog.mutex);
  return NULL;
}

void watchdog_start(struct rendezvous *rendezvous, uint64_t timeout_ns, uint64_t grace_ns) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&watchdog.stop, &attributes);
  pthread_condattr_destroy(&attributes);
  watchdog.rendezvous = rendezvous;
  watchdog.timeout_ns = timeout_ns;
  watchdog.deadline_ns = clock_now_ns() + timeout_ns;
  watchdog.grace_ns = grace_ns;
  int error = pthread_create(&watchdog.thread, NULL, run, NULL);
  if (error)
    message_fail("cannot start a thread: %s", strerror(error));
}

void watchdog_watch(ncclComm_t comm) {
  pthread_mutex_lock(&watchdog.mutex);
  if (watchdog.comms_count < COMMS_MAX)
    watchdog.comms[watchdog.comms_count++] = comm;
  pthread_mutex_unlock(&watchdog.mutex);
}

void watchdog_forget(void) {
  pthread_mutex_lock(&watchdog.mutex);
  watchdog.comms_count = 0;
  pthread_mutex_unlock(&watchdog.mutex);
}

void watchdog_set_place(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&watchdog.mutex);
  vsnprintf(watchdog.place, sizeof watchdog.place, format, arguments);
  pthread_mutex_unlock(&watchdog.mutex);
  va_end(arguments);
}

void watchdog_stop(void) {
  pthread_mutex_lock(&watchdog.mutex);
  watchdog.is_stopped = true;
  pthread_cond_signal(&watchdog.stop);
  pthread_mutex_unlock(&watchdog.mutex);
  pthread_join(watchdog.thread, NULL);
}
