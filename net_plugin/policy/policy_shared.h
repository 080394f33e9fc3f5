/* SPDX-License-Identifier: Apache-2.0 */
/* policy_shared: what the links of one engine learn together, by windows over all their lanes.
 * Owns: only its own struct, which the engine holds.  Threads: one at a time (the holder of the
 * engine lock).  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_POLICY_SHARED_H
#define NET_PLUGIN_POLICY_POLICY_SHARED_H

#include "net_plugin/policy/compression.h"
#include "net_plugin/policy/flow_count.h"

struct policy_shared {
  struct limit_window window;
  uint64_t began_ns;              /* the window; 0: nothing has passed since the last one */
  bool is_warm;                   /* a window has ended */
  struct flow_count count;        /* how many flows a connection uses */
  struct compression compression; /* whether chunks are compressed */
};

void policy_shared_init(struct policy_shared *shared);
/* This passed on a connection since the last time, or on one of its lanes, in bulk traffic. */
void policy_shared_passed(struct policy_shared *shared, const struct limit_window *passed,
                          uint64_t now_ns);

#endif
