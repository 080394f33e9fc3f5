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

#include "net_plugin/policy/limits.h"

struct slow_flow_lane {
  uint64_t bytes;    /* at the last call */
  uint64_t slow_ns;  /* of load in which it was slow */
  uint64_t good_ns;  /* of load in which it was not */
  uint64_t retry_ns; /* not before */
  unsigned tries;    /* in a row */
  uint32_t tried_ps; /* its rate at the last one */
};

struct slow_flow {
  unsigned lane_count, groups;
  uint64_t looked_ns;
  uint64_t next_ns; /* the next try of any lane */
  struct slow_flow_lane lanes[POLICY_MAX_LANES];
};

/* What is known of a lane. */
struct slow_flow_sample {
  uint64_t bytes;       /* acknowledged, ever */
  uint32_t ps_per_byte; /* 0: not known, or the lane is not up */
  bool is_busy;         /* has bytes on the way */
};

/* groups: lanes whose numbers are equal modulo this are compared; 0 is 1. */
void slow_flow_init(struct slow_flow *slow_flow, unsigned lanes, unsigned groups);

/* To be called about every 100 ms under load. The lane to reconnect, or -1. samples: by lane. */
int slow_flow_pick(struct slow_flow *slow_flow, const struct slow_flow_sample *samples,
                   uint64_t now_ns);

#endif
