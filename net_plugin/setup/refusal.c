/* SPDX-License-Identifier: Apache-2.0 */
/* See refusal.h. */
#include "net_plugin/setup/refusal.h"

#include "net_plugin/setup/limits.h"

bool refusal_heard(struct refusal *refusal, bool is_refused, bool has_lane, bool is_confirmed,
                   uint64_t now_ns) {
  if (!is_refused || has_lane) {
    refusal->since_ns = 0;
  } else if (!refusal->since_ns) {
    refusal->since_ns = now_ns;
  }
  uint64_t limit_ns = is_confirmed ? REFUSAL_CONFIRMED_NS : REFUSAL_GONE_NS;
  return refusal->since_ns && now_ns - refusal->since_ns >= limit_ns;
}
