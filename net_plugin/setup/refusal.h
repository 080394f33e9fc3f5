/* SPDX-License-Identifier: Apache-2.0 */
/* refusal: when is a peer's process gone? A process that was killed sends nothing, but its host
 * refuses every dial. Anyone on the path can forge that, so it counts only while no lane is left
 * and nothing else is heard. PURE.
 * Owns: only its own struct.  Threads: holder of the engine lock.  Blocks: never.  Fails: cannot.
 */
#ifndef NET_PLUGIN_SETUP_REFUSAL_H
#define NET_PLUGIN_SETUP_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/setup/limits.h"

/* Zeroed: none was heard. */
struct refusal {
  uint64_t since_ns; /* every dial, or inquiry, is refused; 0: not so */
};

/* Lanes are up, or something could not be asked. */
static inline void refusal_over(struct refusal *refusal) {
  refusal->since_ns = 0;
}

/* How a dial, or an inquiry, ended. has_lane: there is one. is_confirmed: something else says that
 * the process is gone, too (REFUSAL_CONFIRMED_NS); no matter unless is_refused. True: it is. */
static inline bool refusal_heard(struct refusal *refusal, bool is_refused, bool has_lane,
                                 bool is_confirmed, uint64_t now_ns) {
  if (!is_refused || has_lane) {
    refusal->since_ns = 0;
  } else if (!refusal->since_ns) {
    refusal->since_ns = now_ns;
  }
  uint64_t limit_ns = is_confirmed ? REFUSAL_CONFIRMED_NS : REFUSAL_GONE_NS;
  return refusal->since_ns && now_ns - refusal->since_ns >= limit_ns;
}

#endif
