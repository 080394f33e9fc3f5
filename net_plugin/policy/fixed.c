/* SPDX-License-Identifier: Apache-2.0 */
/* fixed: the policy that learns nothing. Round robin over the lanes that can write, chunks of the
 * configured size, a constant number of lanes; no reconnects of slow lanes. For
 * tests (settings_use_policy), and the shortest example of a policy. */
#include "net_plugin/policy/policy.h"

struct fixed {
  struct policy policy;
  unsigned last; /* the lane that took the last chunk */
};

static void fixed_sent(struct policy *policy, unsigned lane, uint32_t bytes, uint64_t now_ns) {
  (void)bytes, (void)now_ns;
  ((struct fixed *)policy)->last = lane;
}

static unsigned fixed_lanes_wanted(const struct policy *policy, uint64_t now_ns) {
  (void)now_ns;
  return policy_first_lanes(policy->config);
}

static int fixed_pick(struct policy *policy, uint64_t candidates, uint64_t left, uint64_t now_ns) {
  (void)left;
  (void)now_ns;
  uint64_t last_bit = lane_bit(((struct fixed *)policy)->last);
  uint64_t after = candidates & ~(last_bit | (last_bit - 1));
  candidates = after != 0 ? after : candidates;
  return candidates != 0 ? __builtin_ctzll(candidates) : -1;
}

static uint32_t fixed_chunk_bytes(const struct policy *policy, unsigned lane, uint64_t total,
                                  uint64_t left, bool is_placed) {
  (void)lane, (void)total, (void)is_placed;
  uint32_t most = policy_usual_chunk_bytes(policy->config);
  return left < most ? (uint32_t)left : most;
}

const struct policy_ops policy_fixed = {
  .name = "fixed",
  .state_bytes = sizeof(struct fixed),
  .sent = fixed_sent,
  .lanes_wanted = fixed_lanes_wanted,
  .pick = fixed_pick,
  .chunk_bytes = fixed_chunk_bytes,
};
