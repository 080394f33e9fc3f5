/* SPDX-License-Identifier: Apache-2.0 */
/* adaptive: the default policy. It learns the rate of each lane and puts four parts together:
 *
 *   stripe               which lane takes the next chunk, how large the chunk is
 *   flow_probe           how fast one flow is by itself, measured by padded PINGs (shared)
 *   trial                bulk traffic over all lanes or over one of each path, by trying (shared)
 *   slow_flow_reconnect  which lane has a bad path and is reconnected
 *
 * A lane that is to be reconnected is draining: it gets no new chunks, and is closed when it has
 * nothing in flight. At most one lane is draining, and never the only one. */
#include "net_plugin/policy/limits.h"
#include "net_plugin/policy/policy.h"
#include "net_plugin/policy/policy_shared.h"
#include "net_plugin/policy/slow_flow_reconnect.h"
#include "net_plugin/policy/stripe.h"

struct adaptive {
  struct policy policy;
  struct policy_config config;
  uint64_t rdma;     /* lanes that are up and RDMA lanes */
  uint64_t draining; /* the lane that is to be reconnected */
  uint64_t acked_bytes[POLICY_MAX_LANES];
  struct stripe stripe;
  struct slow_flow slow_flow;
};

static uint64_t lane_bit(unsigned lane) {
  return 1ull << lane;
}

static struct adaptive *adaptive_of(struct policy *policy) {
  return (struct adaptive *)policy;
}

static const struct adaptive *adaptive_of_const(const struct policy *policy) {
  return (const struct adaptive *)policy;
}

static struct flow_probe *adaptive_probe(const struct adaptive *adaptive) {
  return adaptive->config.shared ? &adaptive->config.shared->probe : NULL;
}

/* NULL: all lanes are used, always. */
static struct trial *adaptive_width(const struct adaptive *adaptive) {
  bool may_narrow = adaptive->config.may_narrow && adaptive->config.shared;
  return may_narrow ? &adaptive->config.shared->width : NULL;
}

/* Queue pairs are few, and not slower for being many. */
static bool adaptive_is_narrow(const struct policy *policy) {
  const struct adaptive *adaptive = adaptive_of_const(policy);
  const struct trial *width = adaptive_width(adaptive);
  return width && width->way == TRIAL_OTHER && adaptive->rdma == 0;
}

static void adaptive_init(struct policy *policy, const struct policy_config *config) {
  struct adaptive *adaptive = adaptive_of(policy);
  adaptive->config = *config;
  stripe_init(&adaptive->stripe, config->chunk_bytes);
  slow_flow_init(&adaptive->slow_flow, config->lanes, config->paths);
}

static void adaptive_end(struct policy *policy) {
  flow_probe_drop(adaptive_probe(adaptive_of(policy)), policy, UINT64_MAX);
}

/* ---- facts ---- */

/* Begins to probe the lane if that is wanted, and the lane is neither busy nor the only one. RDMA
 * lanes have no rate limit of their own: they share their NIC's. */
static void adaptive_may_probe(struct adaptive *adaptive, unsigned lane, uint64_t now_ns) {
  struct flow_probe *probe = adaptive_probe(adaptive);
  bool has_others = (adaptive->stripe.up & ~lane_bit(lane)) != 0;
  bool is_usable =
      (adaptive->stripe.up & ~(adaptive->rdma | adaptive->draining) & lane_bit(lane)) != 0;
  bool is_idle = adaptive->stripe.loads[lane].outstanding_bytes == 0;
  if (has_others && is_usable && is_idle && flow_probe_is_wanted(probe, now_ns)) {
    flow_probe_start(probe, adaptive, lane);
  }
}

static void adaptive_lane_up(struct policy *policy, unsigned lane, uint64_t now_ns) {
  struct adaptive *adaptive = adaptive_of(policy);
  stripe_lane_up(&adaptive->stripe, lane);
  adaptive_may_probe(adaptive, lane, now_ns);
}

static void adaptive_lane_is_rdma(struct policy *policy, unsigned lane) {
  struct adaptive *adaptive = adaptive_of(policy);
  adaptive->rdma |= lane_bit(lane);
  flow_probe_drop(adaptive_probe(adaptive), policy, lane_bit(lane));
}

static void adaptive_lane_lost(struct policy *policy, unsigned lane) {
  struct adaptive *adaptive = adaptive_of(policy);
  stripe_lane_lost(&adaptive->stripe, lane);
  adaptive->rdma &= ~lane_bit(lane);
  bool has_others = (adaptive->stripe.up & ~adaptive->draining) != 0;
  adaptive->draining = has_others ? adaptive->draining & ~lane_bit(lane) : 0;
  flow_probe_drop(adaptive_probe(adaptive), policy, lane_bit(lane));
}

static void adaptive_posted(struct policy *policy, uint64_t bytes, uint64_t now_ns) {
  struct adaptive *adaptive = adaptive_of(policy);
  struct stripe *stripe = &adaptive->stripe;
  const struct flow_probe *probe = adaptive_probe(adaptive);
  stripe_time(stripe, now_ns);
  stripe->flow_ps_per_byte = adaptive->rdma == 0 ? flow_probe_ps_per_byte(probe) : 0;
  stripe->narrow_chunk_bytes = adaptive_is_narrow(policy) ? adaptive->config.narrow_chunk_bytes : 0;
  if (bytes >= ADAPTIVE_ALL_LANES_BYTES && flow_probe_is_wanted(probe, now_ns)) {
    adaptive_may_probe(adaptive, stripe_most_rested(stripe), now_ns);
  }
}

static void adaptive_sent(struct policy *policy, unsigned lane, uint32_t bytes, uint64_t now_ns) {
  stripe_sent(&adaptive_of(policy)->stripe, lane, bytes, now_ns);
}

static void adaptive_acked(struct policy *policy, unsigned lane, uint64_t bytes, uint64_t now_ns) {
  struct adaptive *adaptive = adaptive_of(policy);
  struct trial *width = adaptive_width(adaptive);
  adaptive->acked_bytes[lane] += bytes;
  if (width && adaptive->rdma == 0) {
    trial_moved(width, bytes, now_ns);
  }
  if ((adaptive->stripe.up & lane_bit(lane)) != 0) {
    stripe_acked(&adaptive->stripe, lane, bytes, now_ns);
  }
}

static void adaptive_probe_answered(struct policy *policy, unsigned lane, uint64_t token,
                                    uint64_t now_ns) {
  flow_probe_answered(adaptive_probe(adaptive_of(policy)), policy, lane, token, now_ns);
}

/* ---- decisions ---- */

/* An RDMA lane takes a message in one piece up to STRIPE_PLACED_LEAST_BYTES, and is no slower than
 * its NIC: others are of use only beyond that, or where they lead through other NICs. */
static bool adaptive_wants_all_lanes(const struct policy *policy, uint64_t bytes) {
  const struct adaptive *adaptive = adaptive_of_const(policy);
  bool is_whole_nic = adaptive->rdma != 0 && adaptive->config.paths <= 1;
  return is_whole_nic ? bytes > STRIPE_PLACED_LEAST_BYTES : bytes >= ADAPTIVE_ALL_LANES_BYTES;
}

static uint64_t adaptive_probed(const struct policy *policy) {
  return flow_probe_lanes(adaptive_probe(adaptive_of_const(policy)), policy);
}

/* Lanes that must not get a chunk, though they are up. */
static uint64_t adaptive_barred(const struct policy *policy) {
  const struct adaptive *adaptive = adaptive_of_const(policy);
  uint64_t probed = adaptive_probed(policy);
  return adaptive->stripe.up != probed ? adaptive->draining | probed : adaptive->draining;
}

/* The first good lane of each path, or all. */
static uint64_t adaptive_used_lanes(const struct policy *policy, uint64_t barred) {
  const struct adaptive *adaptive = adaptive_of_const(policy);
  uint64_t paths = 0, used = 0;
  if (!adaptive_is_narrow(policy)) {
    return UINT64_MAX;
  }
  for (uint64_t lanes = adaptive->stripe.up & ~barred & ~adaptive->stripe.slow; lanes != 0;
       lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t path = lane_bit(adaptive->config.paths > 1 ? lane % adaptive->config.paths : 0);
    used |= (paths & path) != 0 ? 0 : lane_bit(lane);
    paths |= path;
  }
  return used != 0 ? used : UINT64_MAX;
}

static int adaptive_pick(struct policy *policy, uint64_t candidates, uint64_t left,
                         uint64_t now_ns) {
  struct adaptive *adaptive = adaptive_of(policy);
  uint64_t barred = adaptive_barred(policy);
  stripe_time(&adaptive->stripe, now_ns);
  return stripe_pick(&adaptive->stripe, candidates & ~barred & adaptive_used_lanes(policy, barred),
                     left);
}

static uint32_t adaptive_chunk_bytes(const struct policy *policy, unsigned lane, uint64_t total,
                                     uint64_t left, bool is_placed) {
  const struct stripe *stripe = &adaptive_of_const(policy)->stripe;
  uint32_t bytes = stripe_chunk_bytes(stripe, lane, total, left);
  if (!is_placed || bytes == left) {
    return bytes;
  }
  uint32_t placed = stripe_placed_bytes(stripe, lane, total);
  bool is_tail = left <= placed + placed / 2 && left <= POLICY_MAX_CHUNK_BYTES;
  return placed < bytes ? placed : is_tail ? (uint32_t)left : placed;
}

static int adaptive_reconnect(struct policy *policy, uint64_t now_ns) {
  struct adaptive *adaptive = adaptive_of(policy);
  if (!adaptive->config.reconnects_slow_lanes) {
    return -1;
  }
  if (adaptive->draining != 0) {
    int lane = __builtin_ctzll(adaptive->draining);
    return adaptive->stripe.loads[lane].outstanding_bytes == 0 ? lane : -1;
  }
  struct slow_flow_sample samples[POLICY_MAX_LANES];
  for (unsigned lane = 0; lane < adaptive->config.lanes; lane++) {
    const struct stripe_load *load = &adaptive->stripe.loads[lane];
    bool is_up = (adaptive->stripe.up & lane_bit(lane)) != 0;
    samples[lane] =
        (struct slow_flow_sample){ adaptive->acked_bytes[lane], is_up ? load->ps_per_byte : 0,
                                   load->outstanding_bytes > 0 };
  }
  int lane = slow_flow_pick(&adaptive->slow_flow, samples, now_ns);
  uint64_t others = lane >= 0 ? adaptive->stripe.up & ~lane_bit((unsigned)lane) : 0;
  adaptive->draining = others != 0 ? lane_bit((unsigned)lane) : 0;
  return -1;
}

static uint64_t adaptive_probes(const struct policy *policy) {
  return flow_probe_due_lanes(adaptive_probe(adaptive_of_const(policy)), policy);
}

static uint32_t adaptive_padding_bytes(struct policy *policy, unsigned lane, uint64_t token,
                                       uint64_t now_ns) {
  return flow_probe_ask(adaptive_probe(adaptive_of(policy)), policy, lane, token, now_ns);
}

/* ---- views ---- */

static uint32_t adaptive_ps_per_byte(const struct policy *policy, unsigned lane) {
  return adaptive_of_const(policy)->stripe.loads[lane].ps_per_byte;
}

const struct policy_ops policy_adaptive = {
  .name = "adaptive",
  .state_bytes = sizeof(struct adaptive),
  .init = adaptive_init,
  .end = adaptive_end,
  .lane_up = adaptive_lane_up,
  .lane_is_rdma = adaptive_lane_is_rdma,
  .lane_lost = adaptive_lane_lost,
  .posted = adaptive_posted,
  .sent = adaptive_sent,
  .acked = adaptive_acked,
  .probe_answered = adaptive_probe_answered,
  .wants_all_lanes = adaptive_wants_all_lanes,
  .pick = adaptive_pick,
  .chunk_bytes = adaptive_chunk_bytes,
  .reconnect = adaptive_reconnect,
  .probes = adaptive_probes,
  .padding_bytes = adaptive_padding_bytes,
  .ps_per_byte = adaptive_ps_per_byte,
  .probed = adaptive_probed,
  .is_narrow = adaptive_is_narrow,
};
