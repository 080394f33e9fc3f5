/* SPDX-License-Identifier: Apache-2.0 */
/* policy_shared: what the links of one engine learn together.
 * Owns: only its own struct, which the engine holds.  Threads: one at a time (the holder of the
 * engine lock).  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_POLICY_SHARED_H
#define NET_PLUGIN_POLICY_POLICY_SHARED_H

#include "net_plugin/policy/compression.h"
#include "net_plugin/policy/flow_count.h"

struct policy_shared {
  struct flow_count count;        /* how many flows a connection uses */
  struct compression compression; /* whether chunks are coded */
};

/* day_ns: the time of day at 0 of the clock. seed: shuffles the order of the windows in which
 * things are compared. */
static inline void policy_shared_init(struct policy_shared *shared, uint64_t day_ns,
                                      uint64_t seed) {
  flow_count_init(&shared->count, day_ns, seed);
  compression_init(&shared->compression, day_ns, seed);
}

#endif
