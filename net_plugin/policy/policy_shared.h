/* SPDX-License-Identifier: Apache-2.0 */
/* policy_shared: what the links of one engine learn together, by windows over all their lanes.
 * Owns: only its own struct, which the engine holds.  Threads: one at a time (the holder of the
 * engine lock).  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_POLICY_SHARED_H
#define NET_PLUGIN_POLICY_POLICY_SHARED_H

#include "net_plugin/policy/compression.h"
#include "net_plugin/policy/flow_count.h"

struct policy_shared {
  struct limit_sum window;
  uint64_t window_ns;             /* when it began; 0: nothing was measured since the last one */
  struct flow_count count;        /* how many flows a connection uses */
  struct compression compression; /* whether chunks are coded */
};

static inline void policy_shared_init(struct policy_shared *shared) {
  *shared = (struct policy_shared){ .window_ns = 0 };
  flow_count_init(&shared->count);
  compression_init(&shared->compression);
}

/* A lane was measured: what passed there in bulk traffic since the last time. */
void policy_shared_measured(struct policy_shared *shared, const struct limit_sum *passed,
                            uint64_t now_ns);

#endif
