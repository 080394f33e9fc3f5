/* SPDX-License-Identifier: Apache-2.0 */
/* failover: lane states, epochs, orders and backoff. */
#include "net_plugin/link/failover.h"

#include <assert.h>

#include "common/random.h"

/* Which moves exist: [from][to]. The drawing is in the header. */
static const bool is_legal_move[4][4] = {
  [LINK_LANE_CLOSED] = { [LINK_LANE_CONNECTING] = true, [LINK_LANE_UP] = true },
  [LINK_LANE_CONNECTING] = { [LINK_LANE_UP] = true,
                             [LINK_LANE_LOST] = true,
                             [LINK_LANE_CLOSED] = true },
  [LINK_LANE_UP] = { [LINK_LANE_LOST] = true, [LINK_LANE_CLOSED] = true },
  [LINK_LANE_LOST] = { [LINK_LANE_CONNECTING] = true, [LINK_LANE_UP] = true },
};

/* The only place where a lane changes its state. */
static void failover_move(struct failover *failover, unsigned lane, enum link_lane_state to) {
  assert(is_legal_move[failover_state(failover, lane)][to]);
  uint64_t bit = lane_bit(lane);
  failover->up = (failover->up & ~bit) | (to == LINK_LANE_UP ? bit : 0);
  failover->connecting = (failover->connecting & ~bit) | (to == LINK_LANE_CONNECTING ? bit : 0);
  failover->lost = (failover->lost & ~bit) | (to == LINK_LANE_LOST ? bit : 0);
}

void failover_init(struct failover *failover, struct link_lane *lanes,
                   const struct link_config *config, uint64_t now_ns) {
  *failover = (struct failover){
    .lanes = lanes,
    .config = config,
    .wanted = 1,
    .least = 1,
    .ceiling = FAILOVER_NO_CEILING,
    .may_dial = config->role == LINK_SENDER,
    .retry_ns = LINK_NO_DEADLINE,
    .down_since_ns = now_ns,
    .random = config->seed,
  };
}

static void failover_find_retry(struct failover *failover) {
  failover->retry_ns = LINK_NO_DEADLINE;
  if (failover->config->role != LINK_SENDER) {
    return;
  }
  for (uint64_t lanes = failover->lost & failover_goal(failover); lanes != 0; lanes &= lanes - 1) {
    uint64_t retry_ns = failover->lanes[__builtin_ctzll(lanes)].retry_ns;
    if (retry_ns < failover->retry_ns) {
      failover->retry_ns = retry_ns;
    }
  }
}

static uint64_t failover_doubled(uint64_t delay_ns, uint32_t times, uint64_t most_ns) {
  for (; times > 0 && delay_ns < most_ns; times--) {
    delay_ns *= 2;
  }
  return delay_ns < most_ns ? delay_ns : most_ns;
}

/* Jitter keeps the flows of one cut from hitting the listener in step. */
static void failover_start_backoff(struct failover *failover, unsigned lane, uint64_t now_ns) {
  struct link_lane *lost = &failover->lanes[lane];
  uint64_t delay_ns =
      failover_doubled(FAILOVER_BACKOFF_MIN_NS, lost->failures++, FAILOVER_BACKOFF_MAX_NS);
  lost->retry_ns = now_ns + delay_ns - random_next(&failover->random) % (delay_ns / 2);
}

uint64_t failover_want(struct failover *failover, unsigned lanes) {
  if (lanes != failover->wanted) {
    failover->ceiling = lanes > failover->wanted ? FAILOVER_NO_CEILING : failover->ceiling;
    failover->wanted = lanes;
    failover_find_retry(failover);
  }
  uint64_t goal = failover_goal(failover);
  uint64_t first = lanes_below(policy_first_lanes(&failover->config->policy));
  bool has_others = (failover->up & goal) != 0 && (failover->lost & goal) == 0;
  return has_others ? failover->up & ~goal & ~first : 0;
}

void failover_leave(struct failover *failover, unsigned lane) {
  struct link_lane *left = &failover->lanes[lane];
  left->fenced_epoch = left->epoch;
  failover_move(failover, lane, LINK_LANE_CLOSED);
  failover_order_close(failover, lane, left->epoch);
}

bool failover_refuse(struct failover *failover, unsigned lane, uint32_t epoch) {
  if ((failover->connecting & lane_bit(lane)) == 0 || failover->lanes[lane].epoch != epoch) {
    return false;
  }
  failover_move(failover, lane, LINK_LANE_CLOSED);
  failover->ceiling = lane > 0 && lane < failover->ceiling ? lane : failover->ceiling;
  return true;
}

bool failover_grow(struct failover *failover) {
  unsigned first_lanes = policy_first_lanes(&failover->config->policy);
  failover->least = first_lanes > failover->least ? first_lanes : failover->least;
  failover_find_retry(failover);
  return failover_unopened(failover) != 0;
}

void failover_keep_spare(struct failover *failover) {
  unsigned lanes = (unsigned)__builtin_popcountll(failover->up) + 1;
  if (lanes <= FAILOVER_LANES_WITH_SPARES && lanes <= failover->config->policy.lanes) {
    failover->keeps_spare = true;
    failover->least = lanes > failover->least ? lanes : failover->least;
    failover_find_retry(failover);
  }
}

void failover_order_close(struct failover *failover, unsigned lane, uint32_t epoch) {
  struct link_lane *closed = &failover->lanes[lane];
  if ((failover->close & lane_bit(lane)) == 0 || epoch > closed->close_epoch) {
    closed->close_epoch = epoch;
    closed->close_reason = LINK_CLOSE_OVER;
  }
  failover->close |= lane_bit(lane);
}

bool failover_come_up(struct failover *failover, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  struct link_lane *risen = &failover->lanes[lane];
  enum link_lane_state state = failover_state(failover, lane);
  bool is_expected = failover->config->role == LINK_SENDER && state == LINK_LANE_CONNECTING
                         ? epoch == risen->epoch
                         : epoch > risen->epoch;
  if (!is_expected || epoch <= risen->fenced_epoch || state == LINK_LANE_UP) {
    failover_order_close(failover, lane, epoch);
    if (state == LINK_LANE_CONNECTING) {
      failover_lose(failover, lane, epoch, FAILOVER_BROKEN, now_ns);
    }
    return false;
  }
  risen->epoch = epoch;
  failover_move(failover, lane, LINK_LANE_UP);
  failover->announce &= ~lane_bit(lane);
  failover_find_retry(failover);
  return true;
}

void failover_hurry(struct failover *failover, uint64_t now_ns) {
  for (uint64_t lanes = failover->lost; lanes != 0; lanes &= lanes - 1) {
    struct link_lane *lost = &failover->lanes[__builtin_ctzll(lanes)];
    if (lost->retry_ns > now_ns + FAILOVER_BACKOFF_MAX_NS && lost->epoch != UINT32_MAX) {
      lost->retry_ns = now_ns + FAILOVER_BACKOFF_MIN_NS;
    }
  }
  failover_find_retry(failover);
}

bool failover_lose(struct failover *failover, unsigned lane, uint32_t epoch, enum failover_end end,
                   uint64_t now_ns) {
  struct link_lane *lost = &failover->lanes[lane];
  bool was_up = (failover->up & lane_bit(lane)) != 0;
  bool was_connecting = (failover->connecting & lane_bit(lane)) != 0;
  if (epoch != lost->epoch || (!was_up && !was_connecting)) {
    return false;
  }
  failover_move(failover, lane, LINK_LANE_LOST);
  lost->counts.losses += was_up && end == FAILOVER_BROKEN;
  if (was_up && epoch > lost->fenced_epoch) {
    lost->fenced_epoch = epoch;
  }
  failover_start_backoff(failover, lane, now_ns);
  failover_find_retry(failover);
  if (was_up && failover->up == 0) {
    failover->down_since_ns = now_ns;
    failover_grow(failover); /* this path may be gone for good, and others not tried yet */
    failover_hurry(failover, now_ns);
  }
  return was_up;
}

bool failover_fence(struct failover *failover, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  struct link_lane *fenced = &failover->lanes[lane];
  if (epoch > fenced->fenced_epoch) {
    fenced->fenced_epoch = epoch;
  }
  if ((failover->up & lane_bit(lane)) == 0 || fenced->epoch > epoch) {
    return false;
  }
  failover_order_close(failover, lane, fenced->epoch);
  return failover_lose(failover, lane, fenced->epoch, FAILOVER_BROKEN, now_ns);
}

bool failover_cut(struct failover *failover, unsigned lane, enum link_close_reason reason,
                  uint64_t now_ns) {
  struct link_lane *cut = &failover->lanes[lane];
  if (!failover_fence(failover, lane, cut->epoch, now_ns)) {
    return false;
  }
  cut->close_reason = reason;
  if (reason == LINK_CLOSE_STALLED && cut->stalls++ > 0 && failover->up != 0) {
    cut->retry_ns = now_ns + failover_doubled(FAILOVER_STALL_BACKOFF_NS, cut->stalls - 2,
                                              FAILOVER_STALL_BACKOFF_MAX_NS);
    failover_find_retry(failover);
  }
  return true;
}

void failover_announce_again(struct failover *failover) {
  bool is_sender = failover->config->role == LINK_SENDER;
  for (uint64_t lanes = failover->lost | failover->connecting; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    bool must_know = !is_sender || failover->lanes[lane].in_flight > 0;
    failover->announce |= must_know ? lane_bit(lane) : 0;
  }
}

static bool failover_open(struct failover *failover, struct link_order *order, uint64_t now_ns) {
  uint64_t ready = failover_unopened(failover);
  if (now_ns >= failover->retry_ns) {
    for (uint64_t lanes = failover->lost & failover_goal(failover); lanes != 0;
         lanes &= lanes - 1) {
      unsigned lane = (unsigned)__builtin_ctzll(lanes);
      ready |= now_ns >= failover->lanes[lane].retry_ns ? lane_bit(lane) : 0;
    }
  }
  if (ready == 0) {
    return false;
  }
  unsigned lane = (unsigned)__builtin_ctzll(ready);
  struct link_lane *opened = &failover->lanes[lane];
  /* Epochs that the peer has fenced already, perhaps before we knew of them, are never used. */
  uint32_t last = opened->epoch > opened->fenced_epoch ? opened->epoch : opened->fenced_epoch;
  if (last == UINT32_MAX) {
    opened->retry_ns = LINK_NO_DEADLINE;
    failover_find_retry(failover);
    return false;
  }
  opened->epoch = last + 1;
  failover_move(failover, lane, LINK_LANE_CONNECTING);
  failover_find_retry(failover);
  *order = (struct link_order){ .kind = LINK_ORDER_OPEN, .lane = lane, .epoch = opened->epoch };
  return true;
}

bool failover_next_order(struct failover *failover, struct link_order *order, uint64_t now_ns) {
  if (failover->close != 0) {
    unsigned lane = (unsigned)__builtin_ctzll(failover->close);
    failover->close &= failover->close - 1;
    *order = (struct link_order){ .kind = LINK_ORDER_CLOSE,
                                  .lane = lane,
                                  .epoch = failover->lanes[lane].close_epoch,
                                  .reason = failover->lanes[lane].close_reason };
    return true;
  }
  return failover_open(failover, order, now_ns);
}

void failover_resumed(struct failover *failover, uint64_t gap_ns, uint64_t now_ns) {
  uint64_t since_ns = failover->down_since_ns + gap_ns;
  failover->down_since_ns = since_ns < now_ns ? since_ns : now_ns; /* lost after it: all counts */
  uint64_t half_ns = failover->config->timeout_ns / 2;
  if (failover->down_since_ns + half_ns < now_ns) {
    failover->down_since_ns = now_ns - half_ns;
  }
}
