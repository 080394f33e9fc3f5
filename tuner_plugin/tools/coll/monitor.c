/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: looks 20 times a second, which costs nothing beside a measurement. */
#include "tuner_plugin/tools/coll/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "tuner_plugin/tools/coll/libs.h"
#include "tuner_plugin/tools/coll/talk.h"

enum { COMMS_MAX = 64, LOOK_EVERY_MS = 50 };

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
} monitor = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void look_at_comm(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  if (libs.ncclCommGetAsyncError(comm, &error) != ncclSuccess || error == ncclSuccess ||
      error == ncclInProgress)
    return;
  const char *detail = libs.ncclGetLastError(comm);
  talk_fail("NCCL failed during %s: %s%s%s", monitor.place, libs.ncclGetErrorString(error),
            detail && *detail ? ": " : "", detail ? detail : "");
}

static void look(void) {
  for (int i = 0; i < monitor.comms_count; i++)
    look_at_comm(monitor.comms[i]);
  int lost = rendezvous_find_lost(monitor.rendezvous);
  if (lost >= 0 && !monitor.lost_ns)
    monitor.lost_ns = clock_now_ns();
  if (lost >= 0 && clock_now_ns() >= monitor.lost_ns + monitor.grace_ns)
    talk_fail("%s has gone; this rank was at %s", rendezvous_name(monitor.rendezvous, lost),
              monitor.place);
  if (monitor.timeout_ns && clock_now_ns() > monitor.deadline_ns)
    talk_fail("no time left (--timeout, %.6g s); this rank was at %s",
              (double)monitor.timeout_ns / 1e9, monitor.place);
}

static void *run(void *unused) {
  (void)unused;
  pthread_mutex_lock(&monitor.mutex);
  while (!monitor.is_stopped) {
    look();
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_EVERY_MS * (long)NS_PER_MS;
    until.tv_sec += until.tv_nsec / (long)NS_PER_S;
    until.tv_nsec %= (long)NS_PER_S;
    pthread_cond_timedwait(&monitor.stop, &monitor.mutex, &until);
  }
  pthread_mutex_unlock(&monitor.mutex);
  return NULL;
}

void monitor_start(struct rendezvous *rendezvous, uint64_t timeout_ns, uint64_t grace_ns) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&monitor.stop, &attributes);
  pthread_condattr_destroy(&attributes);
  monitor.rendezvous = rendezvous;
  monitor.timeout_ns = timeout_ns;
  monitor.deadline_ns = clock_now_ns() + timeout_ns;
  monitor.grace_ns = grace_ns;
  int error = pthread_create(&monitor.thread, NULL, run, NULL);
  if (error)
    talk_fail("cannot start a thread: %s", strerror(error));
}

void monitor_watch(ncclComm_t comm) {
  pthread_mutex_lock(&monitor.mutex);
  if (monitor.comms_count < COMMS_MAX)
    monitor.comms[monitor.comms_count++] = comm;
  pthread_mutex_unlock(&monitor.mutex);
}

void monitor_forget(void) {
  pthread_mutex_lock(&monitor.mutex);
  monitor.comms_count = 0;
  pthread_mutex_unlock(&monitor.mutex);
}

void monitor_set_place(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&monitor.mutex);
  vsnprintf(monitor.place, sizeof monitor.place, format, arguments);
  pthread_mutex_unlock(&monitor.mutex);
  va_end(arguments);
}

void monitor_stop(void) {
  pthread_mutex_lock(&monitor.mutex);
  monitor.is_stopped = true;
  pthread_cond_signal(&monitor.stop);
  pthread_mutex_unlock(&monitor.mutex);
  pthread_join(monitor.thread, NULL);
}
