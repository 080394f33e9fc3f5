/* SPDX-License-Identifier: Apache-2.0 */
/* stripe: lane choice by expected drain time, chunk sizes by message size and lane speed. */
#include "net_plugin/policy/stripe.h"

#include <assert.h>

void stripe_init(struct stripe *stripe, const struct policy_lanes *lanes) {
  *stripe = (struct stripe){ .lanes = lanes };
}

static void stripe_compare(struct stripe *stripe) {
  struct rates rates = { .count = 0 };
  stripe->unknown = 0;
  for (uint64_t lanes = *stripe->lanes->up; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint32_t rate = policy_lane_of(stripe->lanes, lane)->ps_per_byte;
    stripe->unknown |= rate == 0 ? lane_bit(lane) : 0;
    rates_add(&rates, rate);
  }
  stripe->typical_ps_per_byte = rates_typical(&rates);
}

/* A lane is slow after STRIPE_SLOW_SAMPLES slow samples in a row (hysteresis): a scheduler can
 * spoil a single one. */
static void stripe_judge(struct stripe *stripe, unsigned lane) {
  struct policy_lane *record = policy_lane_of(stripe->lanes, lane);
  if (record->ps_per_byte * 100ull > stripe->typical_ps_per_byte * (uint64_t)STRIPE_SLOW_PERCENT) {
    record->slow_samples += record->slow_samples < STRIPE_SLOW_SAMPLES ? 1 : 0;
  } else {
    record->slow_samples /= 2;
  }
  if (record->slow_samples == STRIPE_SLOW_SAMPLES) {
    stripe->slow |= lane_bit(lane);
  } else if (record->slow_samples == 0) {
    stripe->slow &= ~lane_bit(lane);
  }
}

void stripe_lanes_changed(struct stripe *stripe) {
  stripe->slow &= *stripe->lanes->up;
  stripe_compare(stripe);
}

/* A lane without a rate of its own is taken to be as good as a typical one: it must get chunks to
 * show what it can do. Where packets are lost so is any lane that is not slow: one that gets more,
 * since it has shown a better rate by chance, is soon above its cap, and a policer drops that. */
static uint32_t stripe_ps_per_byte(const struct stripe *stripe, unsigned lane) {
  bool is_slow = (stripe->slow & lane_bit(lane)) != 0;
  uint32_t own =
      is_slow || !stripe->is_lossy ? policy_lane_of(stripe->lanes, lane)->ps_per_byte : 0;
  if (own != 0) {
    return own;
  }
  return stripe->typical_ps_per_byte != 0 ? stripe->typical_ps_per_byte
                                          : STRIPE_DEFAULT_PS_PER_BYTE;
}

/* How long the lane would be busy with one more chunk, in picoseconds. */
static uint64_t stripe_drain_ps(const struct stripe *stripe, unsigned lane) {
  bool is_slow = (stripe->slow & lane_bit(lane)) != 0;
  uint64_t chunk_bytes = is_slow ? STRIPE_SLOW_CHUNK_BYTES : STRIPE_MIN_CHUNK_BYTES;
  return (policy_in_flight(stripe->lanes, lane) + chunk_bytes) * stripe_ps_per_byte(stripe, lane);
}

/* The one of `lanes` with the least drain time; the first in bit order among equals. */
static int stripe_pick_least(const struct stripe *stripe, uint64_t lanes, uint64_t *least_ps) {
  int best = -1;
  for (; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t drain_ps = stripe_drain_ps(stripe, lane);
    if (drain_ps < *least_ps) {
      *least_ps = drain_ps;
      best = (int)lane;
    }
  }
  return best;
}

/* The lanes without anything to do. */
static uint64_t stripe_idle(const struct stripe *stripe, uint64_t lanes) {
  uint64_t idle = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    bool is_idle = policy_in_flight(stripe->lanes, (unsigned)__builtin_ctzll(lanes)) == 0;
    idle |= is_idle ? lanes & -lanes : 0;
  }
  return idle;
}

/* The candidates without lanes that would, or might, hold up the others. */
static uint64_t stripe_without_laggards(const struct stripe *stripe, uint64_t candidates) {
  uint64_t least_ps = UINT64_MAX;
  stripe_pick_least(stripe, *stripe->lanes->up & ~stripe->slow, &least_ps);
  for (uint64_t lanes = candidates & stripe->slow; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    if (stripe_drain_ps(stripe, lane) / 2 > least_ps) {
      candidates &= ~lane_bit(lane);
    }
  }
  bool has_others = (*stripe->lanes->up & (*stripe->lanes->up - 1)) != 0;
  for (uint64_t lanes = candidates & stripe->unknown; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    if (policy_in_flight(stripe->lanes, lane) >= STRIPE_UNKNOWN_BYTES && has_others) {
      candidates &= ~lane_bit(lane);
    }
  }
  return candidates;
}

int stripe_pick(const struct stripe *stripe, uint64_t candidates, uint64_t left, uint64_t now_ns) {
  uint64_t last_bit = lane_bit(stripe->last);
  /* What was posted together stays together. */
  bool is_batch = now_ns < policy_lane_of(stripe->lanes, stripe->last)->sent_ns + STRIPE_BATCH_NS;
  uint64_t most = is_batch ? STRIPE_WARM_BYTES : STRIPE_SMALL_BYTES - 1;
  if (left <= most && (candidates & last_bit & ~stripe->slow) != 0) {
    uint64_t bytes = policy_in_flight(stripe->lanes, stripe->last);
    if (bytes * stripe_ps_per_byte(stripe, stripe->last) <= STRIPE_WARM_PS) {
      return (int)stripe->last; /* what is left is small, and it passes that on at once */
    }
  }
  if ((candidates & (stripe->slow | stripe->unknown)) != 0) {
    candidates = stripe_without_laggards(stripe, candidates);
  }
  if ((candidates & (candidates - 1)) == 0) {
    return candidates == 0 ? -1 : __builtin_ctzll(candidates);
  }
  /* Round robin among equals: the lanes after the last one come first. */
  uint64_t up_to_last = lanes_below(stripe->last + 1);
  uint64_t idle = stripe_idle(stripe, candidates & ~stripe->slow);
  if (idle != 0) {
    uint64_t after_last = idle & ~up_to_last;
    return __builtin_ctzll(after_last != 0 ? after_last : idle);
  }
  uint64_t least_ps = UINT64_MAX;
  int after = stripe_pick_least(stripe, candidates & ~up_to_last, &least_ps);
  int before = stripe_pick_least(stripe, candidates & up_to_last, &least_ps);
  return before >= 0 ? before : after;
}

/* So much less as the lane is slower than a typical one. Aging may have made its rate better. */
static uint64_t stripe_slow_share(const struct stripe *stripe, unsigned lane, uint64_t bytes) {
  uint64_t own = policy_lane_of(stripe->lanes, lane)->ps_per_byte;
  bool is_less = (stripe->slow & lane_bit(lane)) != 0 && own > stripe->typical_ps_per_byte;
  return is_less ? bytes * stripe->typical_ps_per_byte / own : bytes;
}

/* At least 1. */
static unsigned stripe_lanes_up(const struct stripe *stripe) {
  unsigned up = (unsigned)__builtin_popcountll(*stripe->lanes->up);
  return up > 0 ? up : 1;
}

/* The size that suits the lane, before looking at what is left. */
static uint32_t stripe_wanted_bytes(const struct stripe *stripe, unsigned lane, uint64_t total) {
  uint64_t lanes = stripe->lanes_used > 0 ? stripe->lanes_used : stripe_lanes_up(stripe);
  uint64_t share = total / (2 * lanes);
  uint64_t wanted = (share + POLICY_GRAIN_BYTES - 1) & ~(uint64_t)(POLICY_GRAIN_BYTES - 1);
  uint64_t quick_ps = lanes == 1 ? STRIPE_ALONE_PS : STRIPE_QUICK_PS;
  uint64_t quick =
      quick_ps / stripe_ps_per_byte(stripe, lane) & ~(uint64_t)(POLICY_GRAIN_BYTES - 1);
  if (lanes > STRIPE_FEW_LANES * policy_paths(stripe->lanes->config)) {
    quick = quick < STRIPE_CAPPED_CHUNK_BYTES ? quick : STRIPE_CAPPED_CHUNK_BYTES;
  }
  uint32_t usual = policy_usual_chunk_bytes(stripe->lanes->config);
  uint32_t most = policy_most_chunk_bytes(stripe->lanes->config);
  wanted = wanted < usual ? wanted : usual;
  wanted = wanted > quick ? wanted : quick;
  wanted = wanted > STRIPE_MIN_CHUNK_BYTES ? wanted : STRIPE_MIN_CHUNK_BYTES;
  wanted = wanted < most ? wanted : most;
  uint64_t scaled = stripe_slow_share(stripe, lane, wanted);
  if (scaled < wanted) {
    scaled &= ~(uint64_t)(POLICY_GRAIN_BYTES - 1);
    uint64_t floor = wanted < STRIPE_SLOW_CHUNK_BYTES ? wanted : STRIPE_SLOW_CHUNK_BYTES;
    wanted = scaled > floor ? scaled : floor;
  }
  return (uint32_t)wanted;
}

uint32_t stripe_chunk_bytes(const struct stripe *stripe, unsigned lane, uint64_t total,
                            uint64_t left) {
  assert(left <= total);
  uint32_t most = policy_usual_chunk_bytes(stripe->lanes->config);
  uint32_t wanted = stripe_wanted_bytes(stripe, lane, total);
  most = wanted > most ? policy_most_chunk_bytes(stripe->lanes->config) : most;
  if (left <= wanted) {
    return (uint32_t)left;
  }
  if (left - wanted >= wanted / 2) {
    return wanted;
  }
  if (left <= most) {
    return (uint32_t)left;
  }
  uint64_t half = (left / 2 + POLICY_GRAIN_BYTES - 1) & ~(uint64_t)(POLICY_GRAIN_BYTES - 1);
  return half < most ? (uint32_t)half : most;
}

uint32_t stripe_placed_bytes(const struct stripe *stripe, unsigned lane, uint64_t total) {
  uint64_t most = (uint64_t)STRIPE_PLACED_CHUNKS * policy_usual_chunk_bytes(stripe->lanes->config);
  uint64_t wanted = total / stripe_lanes_up(stripe);
  if (wanted < STRIPE_PLACED_LEAST_BYTES) {
    wanted = STRIPE_PLACED_LEAST_BYTES;
  }
  uint64_t in_flight = policy_in_flight(stripe->lanes, lane);
  wanted = wanted > in_flight ? wanted : in_flight;
  if (wanted > most) {
    wanted = most;
  }
  wanted = stripe_slow_share(stripe, lane, wanted);
  wanted = (wanted + POLICY_GRAIN_BYTES - 1) & ~(uint64_t)(POLICY_GRAIN_BYTES - 1);
  return (uint32_t)(wanted < POLICY_MAX_CHUNK_BYTES ? wanted : POLICY_MAX_CHUNK_BYTES);
}

/* An old rate means little: the estimate of a slow lane that is left alone gets better with time.
 */
static void stripe_age(struct stripe *stripe, uint64_t now_ns) {
  for (uint64_t lanes = stripe->slow; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    struct policy_lane *record = policy_lane_of(stripe->lanes, lane);
    if (policy_in_flight(stripe->lanes, lane) == 0 && record->sample_ns < stripe->aged_ns) {
      record->ps_per_byte /= 2;
    }
  }
  stripe->aged_ns = now_ns;
  stripe_compare(stripe);
}

static void stripe_begin_sample(struct policy_lane *record, uint64_t in_flight, uint64_t now_ns) {
  record->sample_ns = now_ns;
  record->sample_bytes = 0;
  record->before_bytes = in_flight;
}

void stripe_sent(struct stripe *stripe, unsigned lane, uint64_t now_ns) {
  struct policy_lane *record = policy_lane_of(stripe->lanes, lane);
  uint64_t in_flight = policy_in_flight(stripe->lanes, lane);
  bool is_slow = (stripe->slow & lane_bit(lane)) != 0;
  /* Small messages are acknowledged late, so a lane that has nothing but these on the way may have
   * been idle for long: its sample starts again. */
  if (in_flight == 0 || (in_flight < STRIPE_DRAINED_BYTES && !is_slow)) {
    stripe_begin_sample(record, in_flight, now_ns);
  }
  record->sent_ns = now_ns;
  stripe->last = lane;
  if (stripe->slow != 0 && now_ns - stripe->aged_ns >= STRIPE_AGING_NS) {
    stripe_age(stripe, now_ns);
  }
}

void stripe_acked(struct stripe *stripe, unsigned lane, uint64_t bytes, bool has_paused,
                  uint64_t now_ns) {
  struct policy_lane *record = policy_lane_of(stripe->lanes, lane);
  if (has_paused) {
    stripe_begin_sample(record, policy_in_flight(stripe->lanes, lane), now_ns);
    return;
  }
  uint64_t before = bytes < record->before_bytes ? bytes : record->before_bytes;
  record->before_bytes -= before;
  record->sample_bytes += bytes - before;
  /* A lane that is never given much is measured when it is done with what it had. */
  uint64_t least =
      (stripe->slow & lane_bit(lane)) != 0 ? STRIPE_SLOW_CHUNK_BYTES : STRIPE_DRAINED_BYTES;
  bool is_enough = record->sample_bytes >= STRIPE_SAMPLE_BYTES ||
                   (policy_in_flight(stripe->lanes, lane) == 0 && record->sample_bytes >= least);
  if (!is_enough || now_ns <= record->sample_ns) {
    return;
  }
  uint64_t elapsed_ns = now_ns - record->sample_ns;
  uint64_t sample =
      elapsed_ns >= UINT64_MAX / 1000 ? UINT32_MAX : elapsed_ns * 1000 / record->sample_bytes;
  sample = sample < 1 ? 1 : sample > UINT32_MAX / 2 ? UINT32_MAX / 2 : sample;
  /* By bytes: acknowledgements come in bursts, and much of a quick lane's arrives within few
   * samples that take next to no time. */
  uint64_t old_ps = record->ps_per_byte, old_bytes = old_ps != 0 ? STRIPE_LEARNED_BYTES : 0;
  uint64_t new_bytes = record->sample_bytes < UINT32_MAX ? record->sample_bytes : UINT32_MAX;
  uint64_t sum_ps = old_ps * old_bytes + sample * new_bytes;
  record->ps_per_byte = (uint32_t)((sum_ps + old_bytes + new_bytes - 1) / (old_bytes + new_bytes));
  record->sample_bytes = 0;
  record->sample_ns = now_ns;
  stripe_compare(stripe);
  stripe_judge(stripe, lane);
}
