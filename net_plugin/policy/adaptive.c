/* SPDX-License-Identifier: Apache-2.0 */
/* adaptive: the default policy. It learns the rate of each lane and puts four parts together:
 *
 *   stripe               which lane takes the next chunk, how large the chunk is
 *   flow_count           how many lanes are used, from what limits them (shared)
 *   compression          whether chunks are compressed, from what limits them (shared)
 *   slow_flow_reconnect  which lane has a bad path and is reconnected
 *
 * A lane that is to be reconnected is draining: it gets no new chunks, and is closed when it has
 * nothing in flight. At most one lane is draining, and never the only one. */
#include "net_plugin/policy/limit.h"
#include "net_plugin/policy/policy_lane.h"
#include "net_plugin/policy/policy_shared.h"
#include "net_plugin/policy/slow_flow_reconnect.h"
#include "net_plugin/policy/stripe.h"

struct adaptive {
  struct policy policy;
  bool is_spread;             /* a message came that makes more than one lane worth opening */
  uint64_t draining;          /* the lane that is to be reconnected */
  unsigned changes;           /* of the number of lanes, that what is measured came after */
  bool is_current;            /* what is measured now */
  bool is_bulk;               /* what was measured last */
  uint64_t changed_ns;        /* when the last one was seen; 0: it has settled */
  uint64_t acked;             /* lanes that were acknowledged anything since then */
  uint64_t measured_ns;       /* the last time */
  uint64_t used;              /* lanes with anything in flight since then */
  uint64_t loaded_since_ns;   /* anything is in flight since then, if it is */
  struct limit_window passed; /* since it was measured; not its lanes */
  uint64_t bulk_bytes;        /* of these, with LIMIT_BULK_BYTES in flight */
  struct policy_lane records[POLICY_MAX_LANES]; /* by lane */
  struct stripe stripe;
  struct slow_flow slow_flow;
};

static uint64_t adaptive_up(const struct adaptive *adaptive) {
  return *adaptive->policy.lanes.up;
}

static uint64_t adaptive_rdma(const struct adaptive *adaptive) {
  return *adaptive->policy.lanes.rdma;
}

/* Bytes of all lanes. */
static uint64_t adaptive_in_flight(const struct adaptive *adaptive) {
  uint64_t bytes = 0;
  for (uint64_t lanes = adaptive_up(adaptive); lanes != 0; lanes &= lanes - 1) {
    bytes += policy_in_flight(&adaptive->policy.lanes, (unsigned)__builtin_ctzll(lanes));
  }
  return bytes;
}

/* NULL: the number of lanes is not learned. */
static struct flow_count *adaptive_count(const struct adaptive *adaptive) {
  const struct policy_config *config = adaptive->policy.config;
  return config->learns_lanes && config->shared ? &config->shared->count : NULL;
}

/* NULL: whether chunks are compressed is not decided here. */
static struct compression *adaptive_compression(const struct adaptive *adaptive) {
  const struct policy_config *config = adaptive->policy.config;
  bool decides = config->compress == POLICY_COMPRESS_AUTO && config->shared;
  return decides ? &config->shared->compression : NULL;
}

/* Of each path as many. */
static unsigned adaptive_lanes(const struct adaptive *adaptive, unsigned level) {
  const struct policy_config *config = adaptive->policy.config;
  unsigned paths = config->paths > 0 ? config->paths : 1;
  unsigned first = policy_first_lanes(config);
  if (level < FLOW_COUNT_GUESS) {
    return first < paths ? first : paths;
  }
  unsigned most = config->lanes - config->lanes % paths;
  unsigned lanes = first << (level - FLOW_COUNT_GUESS);
  most = most > first ? most : first;
  return lanes < most ? lanes : most;
}

/* What decides the number of lanes; NULL: the first guess does, as for RDMA lanes. */
static const struct flow_count *adaptive_learned(const struct adaptive *adaptive) {
  return adaptive_rdma(adaptive) == 0 ? adaptive_count(adaptive) : NULL;
}

/* Lanes that chunks go over, as far as they are up: so many of the lowest numbers. */
static uint64_t adaptive_counted(const struct adaptive *adaptive) {
  const struct flow_count *learned = adaptive_learned(adaptive);
  return lanes_below(adaptive_lanes(adaptive, learned ? learned->level : FLOW_COUNT_GUESS));
}

static void adaptive_init(struct policy *policy) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  stripe_init(&adaptive->stripe, policy->config, &policy->lanes, adaptive->records);
  slow_flow_init(&adaptive->slow_flow, policy->config, &policy->lanes, adaptive->records);
  if (adaptive_compression(adaptive)) {
    adaptive_compression(adaptive)->is_asked = true;
  }
  if (adaptive_count(adaptive)) {
    unsigned level = FLOW_COUNT_GUESS;
    while (adaptive_lanes(adaptive, level) < adaptive_lanes(adaptive, level + 1)) {
      level++;
    }
    flow_count_join(adaptive_count(adaptive), level);
  }
}

static bool adaptive_is_busy(const struct adaptive *adaptive, unsigned lane) {
  return policy_in_flight(&adaptive->policy.lanes, lane) > 0;
}

/* Lanes of this link came up or went away. */
static void adaptive_flows_changed(struct adaptive *adaptive, int flows) {
  if (adaptive_count(adaptive)) {
    flow_count_changed(adaptive_count(adaptive), flows);
  }
}

static void adaptive_end(struct policy *policy) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  adaptive_flows_changed(adaptive, -__builtin_popcountll(adaptive_up(adaptive)));
}

/* ---- facts ---- */

static void adaptive_lane_up(struct policy *policy, unsigned lane, uint64_t now_ns) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  policy_lane_begin(&adaptive->records[lane], now_ns);
  stripe_lanes_changed(&adaptive->stripe);
  adaptive_flows_changed(adaptive, 1);
}

static void adaptive_lane_lost(struct policy *policy, unsigned lane) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  adaptive_flows_changed(adaptive, -1);
  stripe_lanes_changed(&adaptive->stripe);
  bool has_others = (adaptive_up(adaptive) & ~adaptive->draining) != 0;
  adaptive->draining = has_others ? adaptive->draining & ~lane_bit(lane) : 0;
}

static void adaptive_posted(struct policy *policy, uint64_t bytes) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  /* An RDMA lane takes a message in one piece up to STRIPE_PLACED_LEAST_BYTES, and is no slower
   * than its NIC: others are of use only beyond that, or where they lead through other NICs. */
  bool is_whole_nic = adaptive_rdma(adaptive) != 0 && policy->config->paths <= 1;
  adaptive->is_spread |=
      is_whole_nic ? bytes > STRIPE_PLACED_LEAST_BYTES : bytes >= ADAPTIVE_LANES_BYTES;
  uint64_t used = adaptive_up(adaptive) & adaptive_counted(adaptive);
  adaptive->stripe.lanes_used = (unsigned)__builtin_popcountll(used);
}

static void adaptive_sent(struct policy *policy, unsigned lane, uint32_t bytes, uint64_t now_ns) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  bool is_idle = !adaptive_is_busy(adaptive, lane);
  if (is_idle && bytes > 0) {
    limit_lane_busy(&adaptive->records[lane], now_ns);
    adaptive->used |= lane_bit(lane);
  }
  if (is_idle && adaptive_in_flight(adaptive) == 0) {
    adaptive->loaded_since_ns = now_ns;
  }
  stripe_sent(&adaptive->stripe, lane, bytes, now_ns);
}

/* What is to be used is up and has been acknowledged something, and only that has anything in
 * flight. Before, what is acknowledged is what the lanes had that were used before. */
static bool adaptive_is_settled(const struct adaptive *adaptive) {
  uint64_t counted = adaptive_counted(adaptive);
  for (uint64_t lanes = adaptive_up(adaptive) & ~counted; lanes != 0; lanes &= lanes - 1) {
    if (adaptive_is_busy(adaptive, (unsigned)__builtin_ctzll(lanes))) {
      return false;
    }
  }
  return !adaptive->is_spread || (counted & ~(adaptive_up(adaptive) & adaptive->acked)) == 0;
}

/* An acknowledgement tells of a time that may be before what was added last. */
static void adaptive_add_load(struct adaptive *adaptive, uint64_t now_ns) {
  if (now_ns > adaptive->loaded_since_ns) {
    adaptive->passed.loaded_ns += now_ns - adaptive->loaded_since_ns;
    adaptive->loaded_since_ns = now_ns;
  }
}

static void adaptive_acked(struct policy *policy, unsigned lane, uint64_t bytes, uint64_t now_ns) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  if (bytes == 0) {
    return;
  }
  uint64_t in_flight = adaptive_in_flight(adaptive);
  adaptive->acked |= lane_bit(lane);
  adaptive->bulk_bytes += in_flight + bytes >= LIMIT_BULK_BYTES ? bytes : 0;
  adaptive->passed.bytes += bytes;
  stripe_acked(&adaptive->stripe, lane, bytes, now_ns);
  if (!adaptive_is_busy(adaptive, lane)) {
    limit_lane_idle(&adaptive->records[lane], now_ns);
  }
  if (in_flight == 0) {
    adaptive_add_load(adaptive, now_ns);
  }
}

/* Is what is measured now of the number of lanes that is wanted now? */
static bool adaptive_is_current(struct adaptive *adaptive, uint64_t now_ns) {
  const struct flow_count *count = adaptive_learned(adaptive);
  if (!count || adaptive->changes == count->changes) {
    return true;
  }
  if (adaptive->changed_ns == 0) {
    adaptive->changed_ns = now_ns;
    adaptive->acked = 0;
  }
  if (adaptive_is_settled(adaptive) || now_ns - adaptive->changed_ns >= LIMIT_SETTLE_MAX_NS) {
    adaptive->changes = count->changes;
    adaptive->changed_ns = 0;
  }
  return false; /* it began before */
}

static uint64_t adaptive_wants_measured(const struct policy *policy, uint64_t now_ns) {
  const struct adaptive *adaptive = (const struct adaptive *)policy;
  const struct flow_count *count = adaptive_learned(adaptive);
  bool is_soon = count && !flow_count_is_steady(count);
  bool is_due = now_ns >= adaptive->measured_ns + (is_soon ? LIMIT_SOON_NS : LIMIT_PERIOD_NS);
  return is_due ? adaptive->used & adaptive_up(adaptive) & ~adaptive_rdma(adaptive) : 0;
}

/* Of the connection, before its lanes are. */
static void adaptive_measured_load(struct adaptive *adaptive, uint64_t now_ns) {
  if (adaptive_in_flight(adaptive) > 0) {
    adaptive_add_load(adaptive, now_ns);
  }
  adaptive->is_bulk =
      adaptive->passed.bytes > 0 && adaptive->bulk_bytes * 2 >= adaptive->passed.bytes;
  adaptive->is_current =
      adaptive_is_current(adaptive, now_ns) && adaptive->is_bulk && adaptive->policy.config->shared;
  if (adaptive->is_current) {
    policy_shared_passed(adaptive->policy.config->shared, &adaptive->passed, now_ns);
  }
  adaptive->passed = (struct limit_window){ .bytes = 0 };
  adaptive->bulk_bytes = 0;
  adaptive->measured_ns = now_ns;
}

static void adaptive_measured(struct policy *policy, unsigned lane,
                              const struct policy_transport *transport, uint64_t now_ns) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  bool is_idle = !adaptive_is_busy(adaptive, lane);
  adaptive->used &= is_idle ? ~lane_bit(lane) : UINT64_MAX;
  if (adaptive->measured_ns != now_ns) {
    adaptive_measured_load(adaptive, now_ns);
  }
  if (!transport) {
    return;
  }
  uint64_t retransmits = adaptive->records[lane].measured.retransmits;
  stripe_retransmitted(&adaptive->stripe, transport->retransmits > retransmits, now_ns);
  struct limit_window passed = { .lanes = limit_lane_measured(&adaptive->records[lane], transport,
                                                              is_idle, now_ns) };
  const struct flow_count *count = adaptive_learned(adaptive);
  if (adaptive->is_current && (!count || adaptive->changes == count->changes)) {
    policy_shared_passed(adaptive->policy.config->shared, &passed, now_ns);
  }
  if (count && !adaptive->is_bulk && adaptive->stripe.turns.state == TURNS_HELP) {
    flow_count_queues(adaptive_count(adaptive), now_ns);
  }
}

static void adaptive_encoded(struct policy *policy, const struct policy_encoded *encoded) {
  struct compression *compression = adaptive_compression((const struct adaptive *)policy);
  if (compression) {
    compression_encoded(compression, encoded);
  }
}

/* ---- decisions ---- */

static unsigned adaptive_lanes_wanted(const struct policy *policy, uint64_t now_ns) {
  const struct adaptive *adaptive = (const struct adaptive *)policy;
  const struct flow_count *learned = adaptive_learned(adaptive);
  unsigned lanes =
      adaptive_lanes(adaptive, learned ? flow_count_open(learned, now_ns) : FLOW_COUNT_GUESS);
  return adaptive->is_spread ? lanes : 1;
}

static int adaptive_pick(struct policy *policy, uint64_t candidates, uint64_t left,
                         uint64_t now_ns) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  candidates &= ~adaptive->draining;
  /* As many as were learned. All, if none of these is good. */
  uint64_t counted = adaptive_counted(adaptive);
  bool is_any_good =
      (counted & adaptive_up(adaptive) & ~adaptive->draining & ~adaptive->stripe.slow) != 0;
  candidates &= is_any_good ? counted : UINT64_MAX;
  return stripe_pick(&adaptive->stripe, candidates, left, now_ns);
}

static uint32_t adaptive_chunk_bytes(const struct policy *policy, unsigned lane, uint64_t total,
                                     uint64_t left, bool is_placed) {
  const struct stripe *stripe = &((const struct adaptive *)policy)->stripe;
  uint32_t bytes = stripe_chunk_bytes(stripe, lane, total, left);
  if (!is_placed || bytes == left) {
    return bytes;
  }
  uint32_t placed = stripe_placed_bytes(stripe, lane, total);
  bool is_tail = left <= placed + placed / 2 && left <= POLICY_MAX_CHUNK_BYTES;
  return placed < bytes ? placed : is_tail ? (uint32_t)left : placed;
}

static int adaptive_reconnect(struct policy *policy, uint64_t now_ns) {
  struct adaptive *adaptive = (struct adaptive *)policy;
  if (!policy->config->reconnects_slow_lanes) {
    return -1;
  }
  if (adaptive->draining != 0) {
    int lane = __builtin_ctzll(adaptive->draining);
    return adaptive_is_busy(adaptive, (unsigned)lane) ? -1 : lane;
  }
  int lane = slow_flow_pick(&adaptive->slow_flow, now_ns);
  uint64_t others = lane >= 0 ? adaptive_up(adaptive) & ~lane_bit((unsigned)lane) : 0;
  adaptive->draining = others != 0 ? lane_bit((unsigned)lane) : 0;
  return -1;
}

static bool adaptive_compress(const struct policy *policy) {
  const struct compression *compression = adaptive_compression((const struct adaptive *)policy);
  return compression && compression->is_on;
}

/* ---- views ---- */

static enum policy_limit adaptive_limit(const struct policy *policy, unsigned lane) {
  return limit_of_lane(&((const struct adaptive *)policy)->records[lane]);
}

static uint32_t adaptive_ps_per_byte(const struct policy *policy, unsigned lane) {
  return ((const struct adaptive *)policy)->records[lane].ps_per_byte;
}

const struct policy_ops policy_adaptive = {
  .name = "adaptive",
  .state_bytes = sizeof(struct adaptive),
  .repeats = true,
  .init = adaptive_init,
  .end = adaptive_end,
  .lane_up = adaptive_lane_up,
  .lane_lost = adaptive_lane_lost,
  .posted = adaptive_posted,
  .sent = adaptive_sent,
  .acked = adaptive_acked,
  .encoded = adaptive_encoded,
  .measured = adaptive_measured,
  .lanes_wanted = adaptive_lanes_wanted,
  .pick = adaptive_pick,
  .chunk_bytes = adaptive_chunk_bytes,
  .compress = adaptive_compress,
  .wants_measured = adaptive_wants_measured,
  .reconnect = adaptive_reconnect,
  .ps_per_byte = adaptive_ps_per_byte,
  .limit = adaptive_limit,
};
