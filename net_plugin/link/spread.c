/* SPDX-License-Identifier: Apache-2.0 */
/* spread: patience with slow lanes, and its end. */
#include "net_plugin/link/spread.h"

#include "net_plugin/link/rates.h"

void spread_init(struct spread *spread, unsigned lanes, unsigned groups) {
  *spread = (struct spread){ .lane_count = lanes, .groups = groups > 0 ? groups : 1 };
}

static uint32_t spread_median(const struct spread *spread, const struct spread_sample *samples,
                              unsigned group) {
  struct rates rates = { .count = 0 };
  for (unsigned lane = group; lane < spread->lane_count; lane += spread->groups) {
    rates_add(&rates, samples[lane].ps_per_byte);
  }
  return rates_typical(&rates);
}

/* Tries that came to nothing are forgotten when the lane shows that something is different now. */
static void spread_forget(struct spread_lane *lane, uint32_t rate, bool is_slow,
                          uint64_t elapsed_ns) {
  lane->good_ns = is_slow ? 0 : lane->good_ns + elapsed_ns;
  bool has_changed = rate > lane->tried_ps * 2ull || rate * 2ull < lane->tried_ps;
  if (lane->good_ns >= SPREAD_PATIENCE_NS || (lane->tries == SPREAD_TRIES && has_changed)) {
    lane->tries = 0;
  }
}

/* Is this lane due for a try? */
static bool spread_judge(struct spread_lane *lane, const struct spread_sample *sample,
                         uint32_t median, uint64_t elapsed_ns, uint64_t now_ns) {
  bool is_slow = sample->ps_per_byte > SPREAD_FAST_PS_PER_BYTE &&
                 sample->ps_per_byte * 100ull >= median * (uint64_t)SPREAD_SLOW_PERCENT;
  spread_forget(lane, sample->ps_per_byte, is_slow, elapsed_ns);
  if (!is_slow) {
    lane->slow_ns = 0;
  } else if (sample->is_busy) {
    /* A lane that has little to do seems slow because nothing overlaps: then it is not busy. */
    lane->slow_ns += elapsed_ns;
  }
  return lane->slow_ns >= SPREAD_PATIENCE_NS && lane->tries < SPREAD_TRIES &&
         now_ns >= lane->retry_ns;
}

static void spread_try(struct spread *spread, unsigned lane, uint32_t rate, uint64_t now_ns) {
  struct spread_lane *tried = &spread->lanes[lane];
  uint64_t pause_ns = SPREAD_PAUSE_NS << tried->tries;
  tried->tries++;
  tried->retry_ns = now_ns + (pause_ns < SPREAD_PAUSE_MAX_NS ? pause_ns : SPREAD_PAUSE_MAX_NS);
  tried->tried_ps = rate;
  tried->slow_ns = 0;
  spread->next_ns = now_ns + SPREAD_GAP_NS;
}

int spread_look(struct spread *spread, const struct spread_sample *samples, uint64_t now_ns) {
  uint64_t elapsed_ns = now_ns - spread->looked_ns, moved = 0, fresh = 0;
  for (unsigned lane = 0; lane < spread->lane_count; lane++) {
    uint64_t bytes = samples[lane].bytes - spread->lanes[lane].bytes;
    spread->lanes[lane].bytes = samples[lane].bytes;
    moved += bytes;
    fresh |= bytes > 0 && samples[lane].ps_per_byte > 0 ? 1ull << lane : 0;
  }
  spread->looked_ns = now_ns;
  if (elapsed_ns > SPREAD_LOOK_MAX_NS || moved < elapsed_ns / 1000000 * SPREAD_LOAD_BYTES_PER_MS) {
    return -1;
  }
  int slowest = -1;
  for (unsigned group = 0; group < spread->groups; group++) {
    uint32_t median = spread_median(spread, samples, group);
    for (unsigned lane = group; lane < spread->lane_count; lane += spread->groups) {
      bool is_due = (fresh >> lane & 1) != 0 &&
                    spread_judge(&spread->lanes[lane], &samples[lane], median, elapsed_ns, now_ns);
      if (is_due && (slowest < 0 || samples[lane].ps_per_byte > samples[slowest].ps_per_byte)) {
        slowest = (int)lane;
      }
    }
  }
  if (slowest < 0 || now_ns < spread->next_ns) {
    return -1;
  }
  spread_try(spread, (unsigned)slowest, samples[slowest].ps_per_byte, now_ns);
  return slowest;
}
