/* SPDX-License-Identifier: Apache-2.0 */
/* slow_flow_reconnect: which lane should be reconnected because it has a bad path.
 * Owns: only its own struct.  Threads: the link's.
 * Blocks: never.  Fails: cannot; no lane that is worth it gives -1.
 *
 * A cloud hashes each flow onto one of many paths. Some flows share one, and have a part of it
 * each, while other paths are empty. A new source port is a new draw. So under bulk load a lane
 * that for SLOW_FLOW_PATIENCE_NS takes much longer for its bytes than the median lane of its group
 * is returned by slow_flow_pick: it gets no new chunks, and is reconnected when what it has is
 * acknowledged. Nothing needs to be compared afterwards: the lane is measured like any other.
 *
 * Paths may just be slow. Tries of a lane are further and further apart, and end after a few, until
 * its rate changes; one lane at a time. Lanes that are all alike are left alone, and lanes of
 * different groups, which use different NICs, are not compared. */
#ifndef NET_PLUGIN_POLICY_SLOW_FLOW_RECONNECT_H
#define NET_PLUGIN_POLICY_SLOW_FLOW_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/policy_lane.h"

struct slow_flow {
  const struct policy_lanes *lanes; /* set by the owner; the others are 0 at first */
  uint64_t looked_ns;
  uint64_t next_ns; /* the next try of any lane */
};

/* Lanes that share a path (policy_config.paths) are compared. To be called about every 100 ms under
 * load. The lane to reconnect, never the only one that is up, or -1. */
int slow_flow_pick(struct slow_flow *slow_flow, uint64_t now_ns);

#endif
