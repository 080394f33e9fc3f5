/* SPDX-License-Identifier: Apache-2.0 */
/* spread: which lane should be dialled anew because it has a bad path.
 * Owns: only its own struct.  Threads: the link's.
 * Blocks: never.  Fails: cannot; no lane that is worth it gives -1.
 *
 * A cloud hashes each flow onto one of many paths. Some flows share one, and have a part of it
 * each, while other paths are empty. A new source port is a new draw. So under bulk load a lane
 * that for SPREAD_PATIENCE_NS takes much longer for its bytes than the median lane of its group is
 * named by spread_look: the link gives it no new chunks, and dials it anew when what it has is
 * acknowledged. Nothing needs to be compared afterwards: the lane is measured like any other.
 *
 * Paths may just be slow. Tries of a lane are further and further apart, and end after a few, until
 * its rate changes; one lane at a time. Lanes that are all alike are left alone, and lanes of
 * different groups, which use different NICs, are not compared. */
#ifndef NET_PLUGIN_LINK_SPREAD_H
#define NET_PLUGIN_LINK_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

#define SPREAD_SLOW_PERCENT 180u     /* time per byte; of two flows on one path each needs 200 */
#define SPREAD_FAST_PS_PER_BYTE 400u /* 20 Gb/s: no lane that is faster is held for slow */
#define SPREAD_PATIENCE_NS 2000000000ull /* of load */
#define SPREAD_PAUSE_NS 4000000000ull    /* after the first try of a lane, then doubled */
#define SPREAD_PAUSE_MAX_NS 64000000000ull
#define SPREAD_GAP_NS 1000000000ull /* between tries of different lanes */
#define SPREAD_TRIES 6u
#define SPREAD_LOAD_BYTES_PER_MS 10000u /* of all lanes: 80 Mb/s; less is no bulk load */
#define SPREAD_LOOK_MAX_NS                                                                         \
  300000000ull /* looks that are further apart have idle time in between                           \
                */

struct spread_lane {
  uint64_t bytes;    /* at the last look */
  uint64_t slow_ns;  /* of load in which it was slow */
  uint64_t good_ns;  /* of load in which it was not */
  uint64_t retry_ns; /* not before */
  unsigned tries;    /* in a row */
  uint32_t tried_ps; /* its rate at the last one */
};

struct spread {
  unsigned lane_count, groups;
  uint64_t looked_ns;
  uint64_t next_ns; /* the next try of any lane */
  struct spread_lane lanes[WIRE_MAX_LANES];
};

/* What is known of a lane. */
struct spread_sample {
  uint64_t bytes;       /* acknowledged, ever */
  uint32_t ps_per_byte; /* 0: not known, or the lane is not up */
  bool is_busy;         /* has bytes on the way */
};

/* groups: lanes whose numbers are equal modulo this are compared; 0 is 1. */
void spread_init(struct spread *spread, unsigned lanes, unsigned groups);

/* To be called about every 100 ms under load. The lane to dial anew, or -1. samples: by lane. */
int spread_look(struct spread *spread, const struct spread_sample *samples, uint64_t now_ns);

#endif
