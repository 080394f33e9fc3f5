/* SPDX-License-Identifier: Apache-2.0 */
/* See slow_flow_reconnect.h. */
#include "net_plugin/policy/slow_flow_reconnect.h"

#include "net_plugin/policy/rates.h"

void slow_flow_init(struct slow_flow *slow_flow, const struct policy_config *config,
                    const struct policy_lanes *lanes, struct policy_lane *records) {
  *slow_flow = (struct slow_flow){
    .lanes = lanes, .records = records, .lane_count = config->lanes, .groups = policy_paths(config)
  };
}

/* 0: not known, or the lane is not up. */
static uint32_t slow_flow_rate(const struct slow_flow *slow_flow, unsigned lane) {
  bool is_up = (*slow_flow->lanes->up >> lane & 1) != 0;
  return is_up ? slow_flow->records[lane].ps_per_byte : 0;
}

static uint32_t slow_flow_median(const struct slow_flow *slow_flow, unsigned group) {
  struct rates rates = { .count = 0 };
  for (unsigned lane = group; lane < slow_flow->lane_count; lane += slow_flow->groups) {
    rates_add(&rates, slow_flow_rate(slow_flow, lane));
  }
  return rates_typical(&rates);
}

/* Tries that came to nothing are forgotten when the lane shows that something is different now. */
static void slow_flow_forget(struct policy_lane *record, bool is_slow, uint64_t elapsed_ns) {
  uint32_t rate = record->ps_per_byte;
  record->good_ns = is_slow ? 0 : record->good_ns + elapsed_ns;
  bool has_changed = rate > record->tried_ps * 2ull || rate * 2ull < record->tried_ps;
  if (record->good_ns >= SLOW_FLOW_PATIENCE_NS ||
      (record->tries == SLOW_FLOW_TRIES && has_changed)) {
    record->tries = 0;
  }
}

/* Is this lane, which is up, due for a try? */
static bool slow_flow_judge(struct slow_flow *slow_flow, unsigned lane, uint32_t median,
                            uint64_t elapsed_ns, uint64_t now_ns) {
  struct policy_lane *record = &slow_flow->records[lane];
  bool is_slow = record->ps_per_byte > SLOW_FLOW_FAST_PS_PER_BYTE &&
                 record->ps_per_byte * 100ull >= median * (uint64_t)SLOW_FLOW_PERCENT;
  slow_flow_forget(record, is_slow, elapsed_ns);
  if (!is_slow) {
    record->slow_ns = 0;
  } else if (policy_in_flight(slow_flow->lanes, lane) > 0) {
    /* A lane that has little to do seems slow because nothing overlaps: then it is not busy. */
    record->slow_ns += elapsed_ns;
  }
  return record->slow_ns >= SLOW_FLOW_PATIENCE_NS && record->tries < SLOW_FLOW_TRIES &&
         now_ns >= record->retry_ns;
}

static void slow_flow_try(struct slow_flow *slow_flow, unsigned lane, uint64_t now_ns) {
  struct policy_lane *tried = &slow_flow->records[lane];
  uint64_t pause_ns = SLOW_FLOW_PAUSE_NS << tried->tries;
  tried->tries++;
  tried->retry_ns =
      now_ns + (pause_ns < SLOW_FLOW_PAUSE_MAX_NS ? pause_ns : SLOW_FLOW_PAUSE_MAX_NS);
  tried->tried_ps = tried->ps_per_byte;
  tried->slow_ns = 0;
  slow_flow->next_ns = now_ns + SLOW_FLOW_GAP_NS;
}

int slow_flow_pick(struct slow_flow *slow_flow, uint64_t now_ns) {
  uint64_t elapsed_ns = now_ns - slow_flow->looked_ns, moved = 0, fresh = 0;
  for (unsigned lane = 0; lane < slow_flow->lane_count; lane++) {
    uint64_t acked = policy_count_of(slow_flow->lanes, slow_flow->lanes->acked, lane);
    uint64_t bytes = acked - slow_flow->records[lane].looked_bytes;
    slow_flow->records[lane].looked_bytes = acked;
    moved += bytes;
    fresh |= bytes > 0 && slow_flow_rate(slow_flow, lane) > 0 ? lane_bit(lane) : 0;
  }
  slow_flow->looked_ns = now_ns;
  if (elapsed_ns > SLOW_FLOW_INTERVAL_MAX_NS ||
      moved < elapsed_ns / 1000000 * SLOW_FLOW_LOAD_BYTES_PER_MS) {
    return -1;
  }
  int slowest = -1;
  for (unsigned group = 0; group < slow_flow->groups; group++) {
    uint32_t median = slow_flow_median(slow_flow, group);
    for (unsigned lane = group; lane < slow_flow->lane_count; lane += slow_flow->groups) {
      bool is_due =
          (fresh >> lane & 1) != 0 && slow_flow_judge(slow_flow, lane, median, elapsed_ns, now_ns);
      if (is_due && (slowest < 0 || slow_flow->records[lane].ps_per_byte >
                                        slow_flow->records[slowest].ps_per_byte)) {
        slowest = (int)lane;
      }
    }
  }
  if (slowest < 0 || now_ns < slow_flow->next_ns) {
    return -1;
  }
  slow_flow_try(slow_flow, (unsigned)slowest, now_ns);
  return slowest;
}
