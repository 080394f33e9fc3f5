/* SPDX-License-Identifier: Apache-2.0 */
/* See policy_shared.h. */
#include "net_plugin/policy/policy_shared.h"

void policy_shared_init(struct policy_shared *shared) {
  *shared = (struct policy_shared){ .began_ns = 0 };
  flow_count_init(&shared->count);
  compression_init(&shared->compression);
}

/* Each connection with traffic has been in it at least once. */
static bool is_window_over(const struct policy_shared *shared, uint64_t now_ns) {
  return now_ns >= shared->began_ns + LIMIT_WINDOW_NS &&
         shared->window.in_flight_ns >= LIMIT_WINDOW_IN_FLIGHT_NS;
}

static void end_window(struct policy_shared *shared, uint64_t now_ns) {
  struct limit_window window = shared->window;
  uint64_t ns = now_ns - shared->began_ns;
  shared->window = (struct limit_window){ .bytes = 0 };
  shared->began_ns = 0;
  if (!shared->is_warm) {
    shared->is_warm = true;
    return;
  }
  if (shared->count.is_learned) {
    flow_count_window(&shared->count, &window, ns, now_ns);
  }
  if (shared->compression.is_asked && flow_count_is_steady(&shared->count)) {
    compression_window(&shared->compression, &window, ns);
  }
}

void policy_shared_passed(struct policy_shared *shared, const struct limit_window *passed,
                          uint64_t now_ns) {
  unsigned changes = shared->count.changes;
  if (shared->began_ns != 0 && is_window_over(shared, now_ns)) {
    end_window(shared, now_ns);
  }
  shared->began_ns = shared->began_ns != 0 ? shared->began_ns : now_ns;
  limit_add(&shared->window, passed);
  flow_count_part(&shared->count, &shared->window, now_ns);
  if (shared->count.changes != changes) {
    shared->window = (struct limit_window){ .bytes = 0 };
    shared->began_ns = 0;
  }
}
