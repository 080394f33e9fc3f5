/* SPDX-License-Identifier: Apache-2.0 */
/* See slow_flow_reconnect.h. */
#include "net_plugin/policy/slow_flow_reconnect.h"

#include "net_plugin/policy/rates.h"

void slow_flow_init(struct slow_flow *slow_flow, unsigned lanes, unsigned groups) {
  *slow_flow = (struct slow_flow){ .lane_count = lanes, .groups = groups > 0 ? groups : 1 };
}

static uint32_t slow_flow_median(const struct slow_flow *slow_flow,
                                 const struct slow_flow_sample *samples, unsigned group) {
  struct rates rates = { .count = 0 };
  for (unsigned lane = group; lane < slow_flow->lane_count; lane += slow_flow->groups) {
    rates_add(&rates, samples[lane].ps_per_byte);
  }
  return rates_typical(&rates);
}

/* Tries that came to nothing are forgotten when the lane shows that something is different now. */
static void slow_flow_forget(struct slow_flow_lane *lane, uint32_t rate, bool is_slow,
                             uint64_t elapsed_ns) {
  lane->good_ns = is_slow ? 0 : lane->good_ns + elapsed_ns;
  bool has_changed = rate > lane->tried_ps * 2ull || rate * 2ull < lane->tried_ps;
  if (lane->good_ns >= SLOW_FLOW_PATIENCE_NS || (lane->tries == SLOW_FLOW_TRIES && has_changed)) {
    lane->tries = 0;
  }
}

/* Is this lane due for a try? */
static bool slow_flow_judge(struct slow_flow_lane *lane, const struct slow_flow_sample *sample,
                            uint32_t median, uint64_t elapsed_ns, uint64_t now_ns) {
  bool is_slow = sample->ps_per_byte > SLOW_FLOW_FAST_PS_PER_BYTE &&
                 sample->ps_per_byte * 100ull >= median * (uint64_t)SLOW_FLOW_PERCENT;
  slow_flow_forget(lane, sample->ps_per_byte, is_slow, elapsed_ns);
  if (!is_slow) {
    lane->slow_ns = 0;
  } else if (sample->is_busy) {
    /* A lane that has little to do seems slow because nothing overlaps: then it is not busy. */
    lane->slow_ns += elapsed_ns;
  }
  return lane->slow_ns >= SLOW_FLOW_PATIENCE_NS && lane->tries < SLOW_FLOW_TRIES &&
         now_ns >= lane->retry_ns;
}

static void slow_flow_try(struct slow_flow *slow_flow, unsigned lane, uint32_t rate,
                          uint64_t now_ns) {
  struct slow_flow_lane *tried = &slow_flow->lanes[lane];
  uint64_t pause_ns = SLOW_FLOW_PAUSE_NS << tried->tries;
  tried->tries++;
  tried->retry_ns =
      now_ns + (pause_ns < SLOW_FLOW_PAUSE_MAX_NS ? pause_ns : SLOW_FLOW_PAUSE_MAX_NS);
  tried->tried_ps = rate;
  tried->slow_ns = 0;
  slow_flow->next_ns = now_ns + SLOW_FLOW_GAP_NS;
}

int slow_flow_pick(struct slow_flow *slow_flow, const struct slow_flow_sample *samples,
                   uint64_t now_ns) {
  uint64_t elapsed_ns = now_ns - slow_flow->looked_ns, moved = 0, fresh = 0;
  for (unsigned lane = 0; lane < slow_flow->lane_count; lane++) {
    uint64_t bytes = samples[lane].bytes - slow_flow->lanes[lane].bytes;
    slow_flow->lanes[lane].bytes = samples[lane].bytes;
    moved += bytes;
    fresh |= bytes > 0 && samples[lane].ps_per_byte > 0 ? 1ull << lane : 0;
  }
  slow_flow->looked_ns = now_ns;
  if (elapsed_ns > SLOW_FLOW_INTERVAL_MAX_NS ||
      moved < elapsed_ns / 1000000 * SLOW_FLOW_LOAD_BYTES_PER_MS) {
    return -1;
  }
  int slowest = -1;
  for (unsigned group = 0; group < slow_flow->groups; group++) {
    uint32_t median = slow_flow_median(slow_flow, samples, group);
    for (unsigned lane = group; lane < slow_flow->lane_count; lane += slow_flow->groups) {
      bool is_due =
          (fresh >> lane & 1) != 0 &&
          slow_flow_judge(&slow_flow->lanes[lane], &samples[lane], median, elapsed_ns, now_ns);
      if (is_due && (slowest < 0 || samples[lane].ps_per_byte > samples[slowest].ps_per_byte)) {
        slowest = (int)lane;
      }
    }
  }
  if (slowest < 0 || now_ns < slow_flow->next_ns) {
    return -1;
  }
  slow_flow_try(slow_flow, (unsigned)slowest, samples[slowest].ps_per_byte, now_ns);
  return slowest;
}
