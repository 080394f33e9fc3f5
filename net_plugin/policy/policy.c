/* SPDX-License-Identifier: Apache-2.0 */
/* policy: learns the rate of each lane and puts four parts together:
 *
 *   stripe               which lane takes the next chunk, how large the chunk is
 *   flow_count           how many lanes are used, from what limits them (shared)
 *   compression          whether chunks are compressed, from what limits them (shared)
 *   slow_flow_reconnect  which lane has a bad path and is reconnected
 *
 * A lane that is to be reconnected is draining: it gets no new chunks, and is closed when it has
 * nothing in flight. At most one lane is draining, and never the only one. */
#include "net_plugin/policy/policy.h"

#include "net_plugin/policy/limit.h"
#include "net_plugin/policy/policy_lane.h"
#include "net_plugin/policy/policy_shared.h"
#include "net_plugin/policy/slow_flow_reconnect.h"
#include "net_plugin/policy/stripe.h"

struct policy {
  struct policy_lanes lanes;
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
  struct stripe stripe;
  struct slow_flow slow_flow;
};

static uint64_t policy_up(const struct policy *policy) {
  return *policy->lanes.up;
}

static uint64_t policy_rdma(const struct policy *policy) {
  return *policy->lanes.rdma;
}

/* Bytes of all lanes. */
static uint64_t policy_all_in_flight(const struct policy *policy) {
  uint64_t bytes = 0;
  for (uint64_t lanes = policy_up(policy); lanes != 0; lanes &= lanes - 1) {
    bytes += policy_in_flight(&policy->lanes, (unsigned)__builtin_ctzll(lanes));
  }
  return bytes;
}

/* NULL: the number of lanes is not learned. */
static struct flow_count *policy_count(const struct policy *policy) {
  const struct policy_config *config = policy->lanes.config;
  return config->learns_lanes && config->shared ? &config->shared->count : NULL;
}

/* NULL: whether chunks are compressed is not decided here. */
static struct compression *policy_compression(const struct policy *policy) {
  const struct policy_config *config = policy->lanes.config;
  bool decides = config->compress == POLICY_COMPRESS_AUTO && config->shared;
  return decides ? &config->shared->compression : NULL;
}

/* Of each path as many. */
static unsigned policy_level_lanes(const struct policy *policy, unsigned level) {
  const struct policy_config *config = policy->lanes.config;
  unsigned paths = policy_paths(config);
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
static const struct flow_count *policy_learned(const struct policy *policy) {
  return policy_rdma(policy) == 0 ? policy_count(policy) : NULL;
}

/* Lanes that chunks go over, as far as they are up: so many of the lowest numbers. */
static uint64_t policy_counted(const struct policy *policy) {
  const struct flow_count *learned = policy_learned(policy);
  return lanes_below(policy_level_lanes(policy, learned ? learned->level : FLOW_COUNT_GUESS));
}

size_t policy_bytes(void) {
  return sizeof(struct policy);
}

void policy_init(struct policy *policy, const struct policy_lanes *lanes) {
  *policy = (struct policy){ .lanes = *lanes, .slow_flow = { .lanes = &policy->lanes } };
  stripe_init(&policy->stripe, &policy->lanes);
  if (policy_compression(policy)) {
    policy_compression(policy)->is_asked = true;
  }
  if (policy_count(policy)) {
    unsigned level = FLOW_COUNT_GUESS;
    while (policy_level_lanes(policy, level) < policy_level_lanes(policy, level + 1)) {
      level++;
    }
    flow_count_join(policy_count(policy), level);
  }
}

static bool policy_is_busy(const struct policy *policy, unsigned lane) {
  return policy_in_flight(&policy->lanes, lane) > 0;
}

/* Lanes of this link came up or went away. */
static void policy_flows_changed(struct policy *policy, int flows) {
  if (policy_count(policy)) {
    flow_count_changed(policy_count(policy), flows);
  }
}

void policy_end(struct policy *policy) {
  policy_flows_changed(policy, -__builtin_popcountll(policy_up(policy)));
}

/* ---- facts ---- */

void policy_lane_up(struct policy *policy, unsigned lane, uint64_t now_ns) {
  policy_lane_begin(policy_lane_of(&policy->lanes, lane), now_ns);
  stripe_lanes_changed(&policy->stripe);
  policy_flows_changed(policy, 1);
}

void policy_lane_lost(struct policy *policy, unsigned lane) {
  policy_flows_changed(policy, -1);
  stripe_lanes_changed(&policy->stripe);
  bool has_others = (policy_up(policy) & ~policy->draining) != 0;
  policy->draining = has_others ? policy->draining & ~lane_bit(lane) : 0;
}

void policy_posted(struct policy *policy, uint64_t bytes) {
  /* An RDMA lane takes a message in one piece up to STRIPE_PLACED_LEAST_BYTES, and is no slower
   * than its NIC: others are of use only beyond that, or where they lead through other NICs. */
  bool is_whole_nic = policy_rdma(policy) != 0 && policy->lanes.config->paths <= 1;
  policy->is_spread |=
      is_whole_nic ? bytes > STRIPE_PLACED_LEAST_BYTES : bytes >= POLICY_LANES_BYTES;
  uint64_t used = policy_up(policy) & policy_counted(policy);
  policy->stripe.lanes_used = (unsigned)__builtin_popcountll(used);
}

void policy_sent(struct policy *policy, unsigned lane, uint32_t bytes, uint64_t now_ns) {
  bool is_idle = !policy_is_busy(policy, lane);
  if (is_idle && bytes > 0) {
    limit_lane_busy(policy_lane_of(&policy->lanes, lane), now_ns);
    policy->used |= lane_bit(lane);
  }
  if (is_idle && policy_all_in_flight(policy) == 0) {
    policy->loaded_since_ns = now_ns;
  }
  stripe_sent(&policy->stripe, lane, now_ns);
}

/* What is to be used is up and has been acknowledged something, and only that has anything in
 * flight. Before, what is acknowledged is what the lanes had that were used before. */
static bool policy_is_settled(const struct policy *policy) {
  uint64_t counted = policy_counted(policy);
  for (uint64_t lanes = policy_up(policy) & ~counted; lanes != 0; lanes &= lanes - 1) {
    if (policy_is_busy(policy, (unsigned)__builtin_ctzll(lanes))) {
      return false;
    }
  }
  return !policy->is_spread || (counted & ~(policy_up(policy) & policy->acked)) == 0;
}

/* An acknowledgement tells of a time that may be before what was added last. */
static void policy_add_load(struct policy *policy, uint64_t now_ns) {
  if (now_ns > policy->loaded_since_ns) {
    policy->passed.loaded_ns += now_ns - policy->loaded_since_ns;
    policy->loaded_since_ns = now_ns;
  }
}

void policy_acked(struct policy *policy, unsigned lane, uint64_t bytes, bool has_paused,
                  uint64_t now_ns) {
  if (bytes == 0) {
    return;
  }
  uint64_t in_flight = policy_all_in_flight(policy);
  policy->acked |= lane_bit(lane);
  policy->bulk_bytes += in_flight + bytes >= LIMIT_BULK_BYTES ? bytes : 0;
  policy->passed.bytes += bytes;
  stripe_acked(&policy->stripe, lane, bytes, has_paused, now_ns);
  if (!policy_is_busy(policy, lane)) {
    limit_lane_idle(policy_lane_of(&policy->lanes, lane), now_ns);
  }
  if (in_flight == 0) {
    policy_add_load(policy, now_ns);
  }
}

/* Is what is measured now of the number of lanes that is wanted now? */
static bool policy_is_current(struct policy *policy, uint64_t now_ns) {
  const struct flow_count *count = policy_learned(policy);
  if (!count || policy->changes == count->changes) {
    return true;
  }
  if (policy->changed_ns == 0) {
    policy->changed_ns = now_ns;
    policy->acked = 0;
  }
  if (policy_is_settled(policy) || now_ns - policy->changed_ns >= LIMIT_SETTLE_MAX_NS) {
    policy->changes = count->changes;
    policy->changed_ns = 0;
  }
  return false; /* it began before */
}

uint64_t policy_wants_measured(const struct policy *policy, uint64_t now_ns) {
  const struct flow_count *count = policy_learned(policy);
  bool is_soon = count && !flow_count_is_steady(count);
  bool is_due = now_ns >= policy->measured_ns + (is_soon ? LIMIT_SOON_NS : LIMIT_PERIOD_NS);
  return is_due ? policy->used & policy_up(policy) & ~policy_rdma(policy) : 0;
}

/* Of the connection, before its lanes are. */
static void policy_measured_load(struct policy *policy, uint64_t now_ns) {
  if (policy_all_in_flight(policy) > 0) {
    policy_add_load(policy, now_ns);
  }
  policy->is_bulk = policy->passed.bytes > 0 && policy->bulk_bytes * 2 >= policy->passed.bytes;
  policy->is_current =
      policy_is_current(policy, now_ns) && policy->is_bulk && policy->lanes.config->shared;
  if (policy->is_current) {
    policy_shared_passed(policy->lanes.config->shared, &policy->passed, now_ns);
  }
  policy->passed = (struct limit_window){ .bytes = 0 };
  policy->bulk_bytes = 0;
  policy->measured_ns = now_ns;
}

void policy_measured(struct policy *policy, unsigned lane, const struct policy_transport *transport,
                     uint64_t now_ns) {
  bool is_idle = !policy_is_busy(policy, lane);
  policy->used &= is_idle ? ~lane_bit(lane) : UINT64_MAX;
  if (policy->measured_ns != now_ns) {
    policy_measured_load(policy, now_ns);
  }
  if (!transport) {
    return;
  }
  uint64_t retransmits = policy_lane_of(&policy->lanes, lane)->measured.retransmits;
  stripe_retransmitted(&policy->stripe, transport->retransmits > retransmits, now_ns);
  struct limit_window passed =
      limit_lane_measured(policy_lane_of(&policy->lanes, lane), transport, is_idle, now_ns);
  const struct flow_count *count = policy_learned(policy);
  if (policy->is_current && (!count || policy->changes == count->changes)) {
    policy_shared_passed(policy->lanes.config->shared, &passed, now_ns);
  }
}

void policy_encoded(struct policy *policy, const struct policy_encoded *encoded) {
  struct compression *compression = policy_compression(policy);
  if (compression) {
    compression_encoded(compression, encoded);
  }
}

/* ---- decisions ---- */

unsigned policy_lanes_wanted(const struct policy *policy, uint64_t now_ns) {
  const struct flow_count *learned = policy_learned(policy);
  unsigned lanes =
      policy_level_lanes(policy, learned ? flow_count_open(learned, now_ns) : FLOW_COUNT_GUESS);
  return policy->is_spread ? lanes : 1;
}

int policy_pick(struct policy *policy, uint64_t candidates, uint64_t left, uint64_t now_ns) {
  candidates &= ~policy->draining;
  /* As many as were learned. All, if none of these is good. */
  uint64_t counted = policy_counted(policy);
  bool is_any_good = (counted & policy_up(policy) & ~policy->draining & ~policy->stripe.slow) != 0;
  candidates &= is_any_good ? counted : UINT64_MAX;
  return stripe_pick(&policy->stripe, candidates, left, now_ns);
}

uint32_t policy_chunk_bytes(const struct policy *policy, unsigned lane, uint64_t total,
                            uint64_t left, bool is_placed) {
  const struct stripe *stripe = &policy->stripe;
  uint32_t bytes = stripe_chunk_bytes(stripe, lane, total, left);
  if (!is_placed || bytes == left) {
    return bytes;
  }
  uint32_t placed = stripe_placed_bytes(stripe, lane, total);
  bool is_tail = left <= placed + placed / 2 && left <= POLICY_MAX_CHUNK_BYTES;
  return placed < bytes ? placed : is_tail ? (uint32_t)left : placed;
}

int policy_reconnect(struct policy *policy, uint64_t now_ns) {
  if (!policy->lanes.config->reconnects_slow_lanes) {
    return -1;
  }
  if (policy->draining != 0) {
    int lane = __builtin_ctzll(policy->draining);
    return policy_is_busy(policy, (unsigned)lane) ? -1 : lane;
  }
  int lane = slow_flow_pick(&policy->slow_flow, now_ns);
  policy->draining = lane >= 0 ? lane_bit((unsigned)lane) : 0;
  return -1;
}

bool policy_compress(const struct policy *policy) {
  const struct compression *compression = policy_compression(policy);
  return compression && compression->is_on;
}

/* ---- views ---- */

enum policy_limit policy_limit_of(const struct policy *policy, unsigned lane) {
  return limit_of_lane(policy_lane_of(&policy->lanes, lane));
}

uint32_t policy_ps_per_byte(const struct policy *policy, unsigned lane) {
  return policy_lane_of(&policy->lanes, lane)->ps_per_byte;
}
