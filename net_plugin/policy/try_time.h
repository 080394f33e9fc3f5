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
  uint64_t slot;   /* multiple of the pause after which it was due, plus 1; 0: it is not */
};

static inline uint64_t try_time_slot(const struct try_time *time, uint64_t pause_ns,
                                     uint64_t now_ns) {
  return (now_ns + time->day_ns) / pause_ns + 1;
}

/* It is due: it may begin after the next multiple. pause_ns: not 0. */
static inline void try_time_due(struct try_time *time, uint64_t pause_ns, uint64_t now_ns) {
  time->slot = time->slot != 0 ? time->slot : try_time_slot(time, pause_ns, now_ns);
}

static inline bool try_time_has_come(const struct try_time *time, uint64_t pause_ns,
                                     uint64_t now_ns) {
  return time->slot != 0 && try_time_slot(time, pause_ns, now_ns) != time->slot;
}

#endif
