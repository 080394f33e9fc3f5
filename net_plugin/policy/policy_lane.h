/* SPDX-License-Identifier: Apache-2.0 */
/* policy_lane: what the policy knows of one lane: a part of the link's record of it. The link,
 * stripe, limit and slow_flow_reconnect write it, as the fields say.
 * Owns: nothing.  Threads: the link's.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_POLICY_LANE_H
#define NET_PLUGIN_POLICY_POLICY_LANE_H

#include "net_plugin/policy/limits.h"
#include "net_plugin/policy/policy_facts.h"

/* Slow_flow_reconnect's, kept when the lane is lost. */
struct policy_lane_slow {
  uint64_t looked_bytes; /* acked_bytes at the last look */
  uint64_t slow_ns;      /* of load in which it was slow, in a row */
  uint64_t good_ns;      /* of load in which it was not, in a row */
  uint64_t retry_ns;     /* no try before */
  unsigned tries;        /* in a row */
  uint32_t tried_ps;     /* its ps_per_byte at the last try */
};

struct policy_lane {
  /* The link's. */
  uint64_t in_flight_bytes; /* sent and not acknowledged */
  uint64_t acked_bytes;     /* ever */

  /* Stripe's, since the lane came up. */
  uint32_t ps_per_byte;  /* drain time; 0: not known yet */
  unsigned slow_samples; /* 0..STRIPE_SLOW_SAMPLES, which makes it slow until it is 0 again */
  uint64_t sample_bytes; /* acknowledged since sample_ns */
  uint64_t sample_ns;    /* when the lane became busy, or the last sample was taken */
  uint64_t before_bytes; /* of those that were in flight then; they are no part of it */
  uint64_t sent_ns;      /* the last chunk */

  /* Limit's, since the lane came up. */
  uint64_t since_ns;                /* in flight since then, if it is */
  uint64_t in_flight_ns;            /* since measured_ns, until it was idle last */
  uint64_t measured_ns;             /* the last measurement; before it, when the lane came up */
  struct policy_transport measured; /* what that one showed */
  uint64_t past_ns;                 /* time that is judged, older ones counting less */
  uint64_t past_in_flight_ns;       /* of past_ns, with bytes in flight */
  uint64_t past_network_ns;         /* of past_ns, network-limited */
  uint64_t past_peer_ns;            /* of past_ns, limited by the peer's window */

  struct policy_lane_slow slow;
};

/* The lane came up: its transport counts from 0. */
static inline void policy_lane_begin(struct policy_lane *lane, uint64_t now_ns) {
  *lane = (struct policy_lane){ .in_flight_bytes = lane->in_flight_bytes,
                                .acked_bytes = lane->acked_bytes,
                                .since_ns = now_ns,
                                .measured_ns = now_ns,
                                .slow = lane->slow };
}

/* The lanes, where the link has them. */
struct policy_lanes {
  const struct policy_config *config;
  const uint64_t *up;   /* they can carry frames */
  const uint64_t *rdma; /* of these, the RDMA lanes */
  struct policy_lane *first;
  size_t stride; /* the next one lies so many bytes behind */
};

static inline struct policy_lane *policy_lane_of(const struct policy_lanes *lanes, unsigned lane) {
  return (struct policy_lane *)(void *)((char *)lanes->first + lane * lanes->stride);
}

/* 0 of a lane that is not up: what it had is sent again. */
static inline uint64_t policy_in_flight(const struct policy_lanes *lanes, unsigned lane) {
  return (*lanes->up >> lane & 1) != 0 ? policy_lane_of(lanes, lane)->in_flight_bytes : 0;
}

/* The typical one of some lanes' rates, as picoseconds per byte. */
struct rates {
  unsigned count;
  uint32_t sorted[POLICY_MAX_LANES];
};

/* 0 stands for a rate that is not known, and is left out. */
static inline void rates_add(struct rates *rates, uint32_t ps_per_byte) {
  if (ps_per_byte == 0) {
    return;
  }
  unsigned at = rates->count++;
  for (; at > 0 && rates->sorted[at - 1] > ps_per_byte; at--) {
    rates->sorted[at] = rates->sorted[at - 1];
  }
  rates->sorted[at] = ps_per_byte;
}

/* The median, so that one lane that is briefly very fast or slow changes nothing for the others;
 * the faster one of two in the middle, so that two lanes can be compared, too. 0: none is known. */
static inline uint32_t rates_typical(const struct rates *rates) {
  return rates->count > 0 ? rates->sorted[(rates->count - 1) / 2] : 0;
}

#endif
