/* SPDX-License-Identifier: Apache-2.0 */
/* The clock read, through the vDSO: about 20 ns, no system call. */
#include "common/clock.h"

uint64_t clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct timespec clock_timespec(uint64_t ns) {
  return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

struct timespec clock_time_of_day_in(uint64_t ns) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return clock_timespec((uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec + ns);
}
