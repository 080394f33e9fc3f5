/* SPDX-License-Identifier: Apache-2.0 */
/* See policy_shared.h. */
#include "net_plugin/policy/policy_shared.h"

static bool is_window_over(const struct policy_shared *shared, uint64_t now_ns) {
  return now_ns >= shared->window_ns + LIMIT_WINDOW_NS &&
         shared->window.in_flight_ns >= LIMIT_WINDOW_IN_FLIGHT_NS;
}

void policy_shared_measured(struct policy_shared *shared, const struct limit_sum *passed,
                            uint64_t now_ns) {
  if (shared->window_ns == 0) {
    shared->window_ns = now_ns > passed->ns ? now_ns - passed->ns : 1;
  }
  limit_add(&shared->window, passed);
  if (!is_window_over(shared, now_ns)) {
    return;
  }
  struct limit_sum window = shared->window;
  uint64_t ns = now_ns - shared->window_ns;
  shared->window = (struct limit_sum){ .ns = 0 };
  shared->window_ns = 0;
  unsigned changes = shared->count.changes;
  if (shared->count.is_learned) {
    flow_count_window(&shared->count, &window, ns, now_ns);
  }
  if (shared->count.changes == changes) {
    compression_window(&shared->compression, &window, !flow_count_may_climb(&shared->count), ns);
  }
}
