/* SPDX-License-Identifier: Apache-2.0 */
/* clock: the only place that reads the time.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot.
 *
 * The protocol core takes `now_ns` as an argument, so that a simulation controls time; only the
 * code around it calls this. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "common/time_units.h"

/* Nanoseconds of CLOCK_MONOTONIC: never goes back, has no relation to the time of day. */
uint64_t clock_now_ns(void);
/* The same time, or a duration, as system calls take it. */
struct timespec clock_timespec(uint64_t ns);
/* The time of day so many nanoseconds from now, for calls that have no other clock. */
struct timespec clock_time_of_day_in(uint64_t ns);

#endif
