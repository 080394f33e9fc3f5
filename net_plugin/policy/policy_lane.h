/* SPDX-License-Identifier: Apache-2.0 */
/* policy_lane: what the policy knows of one lane, besides what the link counts (struct
 * policy_lanes). stripe, limit and slow_flow_reconnect write it, as the fields say.
 * Owns: only its own struct; the policy has an array of them, by lane.  Threads: the link's.
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_POLICY_LANE_H
#define NET_PLUGIN_POLICY_POLICY_LANE_H

#include "net_plugin/policy/limits.h"
#include "net_plugin/policy/policy_facts.h"

/* A chunk that the lane has sent. */
struct policy_lane_chunk {
  uint64_t end;   /* policy_lanes.acked once it is acknowledged */
  uint64_t ns;    /* when it was sent, if it was alone on its lane; 0: it was not */
  uint32_t bytes; /* its size */
};

struct policy_lane {
  /* Stripe's, since the lane came up. */
  uint32_t ps_per_byte;  /* drain time; 0: not known yet */
  unsigned slow_samples; /* 0..STRIPE_SLOW_SAMPLES, which makes it slow until it is 0 again */
  uint64_t sample_bytes; /* acknowledged since sample_ns */
  uint64_t sample_ns;    /* when the lane became busy, or the last sample was taken */
  uint64_t before_bytes; /* of those that were in flight then; they are no part of it */
  uint64_t sent_ns;      /* the last chunk */
  unsigned sent_chunks;  /* recent[sent_chunks % STRIPE_RECENT] is the next one's */
  struct policy_lane_chunk recent[STRIPE_RECENT]; /* that were sent last */

  /* Limit's, since the lane came up. */
  uint64_t since_ns;                /* in flight since then, if it is */
  uint64_t in_flight_ns;            /* since measured_ns, until it was idle last */
  uint64_t measured_ns;             /* the last measurement; before it, when the lane came up */
  struct policy_transport measured; /* what that one showed */
  uint64_t past_ns;                 /* time that is judged, older ones counting less */
  uint64_t past_in_flight_ns;       /* of past_ns, with bytes in flight */
  uint64_t past_network_ns;         /* of past_ns, network-limited */
  uint64_t past_peer_ns;            /* of past_ns, limited by the peer's window */

  /* Slow_flow_reconnect's, kept when the lane is lost. */
  uint64_t looked_bytes; /* policy_lanes.acked at the last look */
  uint64_t slow_ns;      /* of load in which it was slow, in a row */
  uint64_t good_ns;      /* of load in which it was not, in a row */
  uint64_t retry_ns;     /* no try before */
  unsigned tries;        /* in a row */
  uint32_t tried_ps;     /* its ps_per_byte at the last try */
};

/* The lane came up: its transport counts from 0. */
static inline void policy_lane_begin(struct policy_lane *lane, uint64_t now_ns) {
  *lane = (struct policy_lane){ .since_ns = now_ns,
                                .measured_ns = now_ns,
                                .looked_bytes = lane->looked_bytes,
                                .slow_ns = lane->slow_ns,
                                .good_ns = lane->good_ns,
                                .retry_ns = lane->retry_ns,
                                .tries = lane->tries,
                                .tried_ps = lane->tried_ps };
}

#endif
