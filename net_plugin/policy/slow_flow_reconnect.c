/* SPDX-License-Identifier: Apache-2.0 */
/* See slow_flow_reconnect.h. */
#include "net_plugin/policy/slow_flow_reconnect.h"

/* 0: not known, or the lane is not up. */
static uint32_t slow_flow_rate(const struct slow_flow *slow_flow, unsigned lane) {
  bool is_up = (*slow_flow->lanes->up >> lane & 1) != 0;
  return is_up ? policy_lane_of(slow_flow->lanes, lane)->ps_per_byte : 0;
}

/* Of the lanes that share the path. */
static uint32_t slow_flow_median(const struct slow_flow *slow_flow, unsigned path) {
  const struct policy_config *config = slow_flow->lanes->config;
  struct rates rates = { .count = 0 };
  for (unsigned lane = path; lane < config->lanes; lane += policy_paths(config)) {
    rates_add(&rates, slow_flow_rate(slow_flow, lane));
  }
  return rates_typical(&rates);
}

/* Tries that came to nothing are forgotten when the lane shows that something is different now. */
static void slow_flow_forget(struct policy_lane *lane, bool is_slow, uint64_t elapsed_ns) {
  struct policy_lane_slow *slow = &lane->slow;
  uint32_t rate = lane->ps_per_byte;
  slow->good_ns = is_slow ? 0 : slow->good_ns + elapsed_ns;
  bool has_changed = rate > slow->tried_ps * 2ull || rate * 2ull < slow->tried_ps;
  if (slow->good_ns >= SLOW_FLOW_PATIENCE_NS || (slow->tries == SLOW_FLOW_TRIES && has_changed)) {
    slow->tries = 0;
  }
}

/* Is this lane, which is up, due for a try? */
static bool slow_flow_judge(struct slow_flow *slow_flow, unsigned index, uint32_t median,
                            uint64_t elapsed_ns, uint64_t now_ns) {
  struct policy_lane *lane = policy_lane_of(slow_flow->lanes, index);
  struct policy_lane_slow *slow = &lane->slow;
  bool is_slow = lane->ps_per_byte > SLOW_FLOW_FAST_PS_PER_BYTE &&
                 lane->ps_per_byte * 100ull >= median * (uint64_t)SLOW_FLOW_PERCENT;
  slow_flow_forget(lane, is_slow, elapsed_ns);
  if (!is_slow) {
    slow->slow_ns = 0;
  } else if (policy_in_flight(slow_flow->lanes, index) > 0) {
    /* A lane that has little to do seems slow because nothing overlaps: then it is not busy. */
    slow->slow_ns += elapsed_ns;
  }
  return slow->slow_ns >= SLOW_FLOW_PATIENCE_NS && slow->tries < SLOW_FLOW_TRIES &&
         now_ns >= slow->retry_ns;
}

static void slow_flow_try(struct slow_flow *slow_flow, struct policy_lane *tried, uint64_t now_ns) {
  struct policy_lane_slow *slow = &tried->slow;
  uint64_t pause_ns = SLOW_FLOW_PAUSE_NS << slow->tries;
  slow->tries++;
  slow->retry_ns = now_ns + (pause_ns < SLOW_FLOW_PAUSE_MAX_NS ? pause_ns : SLOW_FLOW_PAUSE_MAX_NS);
  slow->tried_ps = tried->ps_per_byte;
  slow->slow_ns = 0;
  slow_flow->next_ns = now_ns + SLOW_FLOW_GAP_NS;
}

int slow_flow_pick(struct slow_flow *slow_flow, uint64_t now_ns) {
  unsigned lanes = slow_flow->lanes->config->lanes, paths = policy_paths(slow_flow->lanes->config);
  uint64_t elapsed_ns = now_ns - slow_flow->looked_ns, moved = 0, fresh = 0;
  for (unsigned index = 0; index < lanes; index++) {
    struct policy_lane *lane = policy_lane_of(slow_flow->lanes, index);
    uint64_t bytes = lane->acked_bytes - lane->slow.looked_bytes;
    lane->slow.looked_bytes = lane->acked_bytes;
    moved += bytes;
    fresh |= bytes > 0 && slow_flow_rate(slow_flow, index) > 0 ? lane_bit(index) : 0;
  }
  slow_flow->looked_ns = now_ns;
  if (elapsed_ns > SLOW_FLOW_INTERVAL_MAX_NS ||
      moved < elapsed_ns / 1000000 * SLOW_FLOW_LOAD_BYTES_PER_MS) {
    return -1;
  }
  int slowest = -1;
  uint32_t least = 0;
  for (unsigned path = 0; path < paths; path++) {
    uint32_t median = slow_flow_median(slow_flow, path);
    for (unsigned index = path; index < lanes; index += paths) {
      uint32_t rate = slow_flow_rate(slow_flow, index);
      bool is_due = (fresh >> index & 1) != 0 &&
                    slow_flow_judge(slow_flow, index, median, elapsed_ns, now_ns);
      if (is_due && rate > least) {
        least = rate;
        slowest = (int)index;
      }
    }
  }
  if (slowest < 0 || now_ns < slow_flow->next_ns) {
    return -1;
  }
  slow_flow_try(slow_flow, policy_lane_of(slow_flow->lanes, (unsigned)slowest), now_ns);
  return slowest;
}
