/* SPDX-License-Identifier: Apache-2.0 */
/* try_time: when something is tried again.
 * Owns: only its own struct.  Threads: its user's.  Blocks: never.  Fails: cannot.
 *
 * While one host tries what is slower, all hosts of its job are slow: a ring goes as fast as its
 * slowest host. If each of 1000 hosts tried at a time of its own, some host would always do. So
 * tries that repeat others begin at multiples of their pause in the time of day, which hosts have
 * in common within milliseconds. Where clocks differ, tries are spread, and nothing else happens.
 */
#ifndef NET_PLUGIN_POLICY_TRY_TIME_H
#define NET_PLUGIN_POLICY_TRY_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct try_time {
  uint64_t day_ns; /* the time of day at 0 of the clock of facts */
  uint64_t slot;   /* multiple of the pause after which it was due, plus 1; 0: none */
};

/* Of a try that is due: whether it begins now, which is after the next multiple of pause_ns, or at
 * once if that is 0. */
static inline bool try_time_has_come(struct try_time *time, uint64_t pause_ns, uint64_t now_ns) {
  if (pause_ns == 0) {
    time->slot = 0;
    return true;
  }
  uint64_t slot = (now_ns + time->day_ns) / pause_ns + 1;
  time->slot = time->slot != 0 ? time->slot : slot;
  return slot != time->slot;
}

/* It begins. Hosts that begin at the same time draw the same random numbers. */
static inline void try_time_begin(struct try_time *time, uint64_t *random) {
  *random = time->slot != 0 ? time->slot : *random;
  time->slot = 0;
}

#endif
