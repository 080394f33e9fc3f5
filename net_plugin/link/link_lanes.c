/* SPDX-License-Identifier: Apache-2.0 */
/* link_lanes: the states of the lanes (link_lane.h), their epochs, orders and backoff; what goes
 * with a lane that is lost, fenced, cut or left, or with a link that fails, and what is told again
 * for it. */
#include <assert.h>
#include <stdio.h>

#include "common/random.h"
#include "net_plugin/link/link_state.h"

/* Which moves exist: [from][to]. The drawing is in link_lane.h. */
static const bool is_legal_move[4][4] = {
  [LINK_LANE_CLOSED] = { [LINK_LANE_CONNECTING] = true, [LINK_LANE_UP] = true },
  [LINK_LANE_CONNECTING] = { [LINK_LANE_UP] = true,
                             [LINK_LANE_LOST] = true,
                             [LINK_LANE_CLOSED] = true },
  [LINK_LANE_UP] = { [LINK_LANE_LOST] = true, [LINK_LANE_CLOSED] = true },
  [LINK_LANE_LOST] = { [LINK_LANE_CONNECTING] = true, [LINK_LANE_UP] = true },
};

static void lanes_find_retry(struct link *link) {
  link->retry_ns = LINK_NO_DEADLINE;
  uint64_t waiting = link->config.role == LINK_SENDER ? link->lost & lanes_goal(link) : 0;
  for (; waiting != 0; waiting &= waiting - 1) {
    uint64_t retry_ns = link->lanes[__builtin_ctzll(waiting)].retry_ns;
    link->retry_ns = retry_ns < link->retry_ns ? retry_ns : link->retry_ns;
  }
}

/* The only place where a lane changes its state. */
static void lanes_move(struct link *link, unsigned lane, enum link_lane_state to) {
  assert(is_legal_move[link_lane_state_of(link, lane)][to]);
  uint64_t bit = lane_bit(lane);
  link->up = (link->up & ~bit) | (to == LINK_LANE_UP ? bit : 0);
  link->connecting = (link->connecting & ~bit) | (to == LINK_LANE_CONNECTING ? bit : 0);
  link->lost = (link->lost & ~bit) | (to == LINK_LANE_LOST ? bit : 0);
  lanes_find_retry(link);
}

/* ---- what goes with a lane ---- */

/* The lane is lost with something in flight. A lane that was up before anything was stuck says
 * nothing about the path that those have which replace it. */
static void send_note_vain_lane(struct link *link, unsigned lane) {
  uint64_t moved_ns = link->lanes[lane].moved_ns;
  if (link->stuck_ns == 0) {
    link->stuck_ns = moved_ns > link->moved_ns ? moved_ns : link->moved_ns;
    link->vain_lanes = 0;
  } else if (link->lanes[lane].up_ns > link->stuck_ns) {
    link->vain_lanes++;
  }
}

/* was_rdma: it may still write to the peer, until that has closed its end. */
static void send_lane_dropped(struct link *link, unsigned lane, bool was_rdma) {
  const struct link_lane *dropped = &link->lanes[lane];
  policy_lane_lost(link->policy, lane);
  if (dropped->in_flight > 0) {
    send_note_vain_lane(link, lane);
  }
  carry_stops(link, lane);
  if (!was_rdma) {
    carry_settle(link, lane);
  }
  link->announce |= lane_bit(lane) & link->lost;
  link->taken.requested = 0; /* a REQUEST may have been lost with it: ask again */
}

/* WINDOW frames may have been lost with a lane, or waited for one: all of it is sent again. */
void receive_tell_again(struct link *link) {
  link->remote_buffers_sent = 0;
  for (uint64_t lanes = link->up; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    link->unacked |= link->lanes[lane].arrived_ns != 0 ? lane_bit(lane) : 0;
  }
  if (link->landed.end > 0 || link->incoming.granted > 0) {
    link->given.is_due = true;
  }
}

static void receive_lane_dropped(struct link *link, unsigned lane) {
  link->arriving &= ~lane_bit(lane);
  link->unacked &= ~lane_bit(lane);
  receive_tell_again(link);
}

/* Frames may have been lost with a lane: announce once more what the peer must know. */
static void lanes_announce_again(struct link *link) {
  for (uint64_t lanes = link->lost | link->connecting; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    bool must_know = link->config.role == LINK_RECEIVER || link->lanes[lane].in_flight > 0;
    link->announce |= must_know ? lane_bit(lane) : 0;
  }
}

/* The lane was UP and is not any more: what is arriving and what is being written on it is dropped.
 */
static void lanes_drop(struct link *link, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  struct link_lane *dropped = &link->lanes[lane];
  link->writing &= ~bit;
  link_partial_ended(link, lane);
  link->pong &= ~bit;
  link->ping &= ~bit;
  bool was_rdma = (link->rdma & bit) != 0;
  link->rdma &= ~bit;
  link_tail_dropped(link, lane);
  if (link->farewell == FAREWELL_WRITING && link->farewell_lane == lane) {
    link->farewell = FAREWELL_DUE;
  }
  if (link->config.role == LINK_SENDER) {
    send_lane_dropped(link, lane, was_rdma);
  } else {
    receive_lane_dropped(link, lane);
  }
  dropped->arrival = ARRIVAL_NONE;
  dropped->buffer = NULL;
  lanes_announce_again(link);
}

/* ---- which lanes are to be open ---- */

uint64_t lanes_want(struct link *link, unsigned lanes) {
  if (lanes != link->wanted) {
    link->ceiling = lanes > link->wanted ? WIRE_MAX_LANES : link->ceiling;
    link->wanted = lanes;
    lanes_find_retry(link);
  }
  uint64_t goal = lanes_goal(link);
  uint64_t first = lanes_below(policy_first_lanes(&link->config.policy));
  bool has_others = (link->up & goal) != 0 && (link->lost & goal) == 0;
  return has_others ? link->up & ~goal & ~first : 0;
}

static void lanes_want_at_least(struct link *link, unsigned lanes) {
  link->least = lanes > link->least ? lanes : link->least;
  lanes_find_retry(link);
}

bool lanes_grow(struct link *link) {
  lanes_want_at_least(link, policy_first_lanes(&link->config.policy));
  return lanes_unopened(link) != 0;
}

/* None of the lanes that are up moves. From now on one more is to be open, if the link may have so
 * many. */
static void lanes_keep_spare(struct link *link) {
  unsigned lanes = (unsigned)__builtin_popcountll(link->up) + 1;
  if (lanes <= FAILOVER_LANES_WITH_SPARES && lanes <= link->config.policy.lanes) {
    link->keeps_spare = true;
    lanes_want_at_least(link, lanes);
  }
}

/* ---- a lane ends ---- */

static uint64_t lanes_doubled(uint64_t delay_ns, uint32_t times, uint64_t most_ns) {
  for (; times > 0 && delay_ns < most_ns; times--) {
    delay_ns *= 2;
  }
  return delay_ns < most_ns ? delay_ns : most_ns;
}

/* Jitter keeps the flows of one cut from hitting the listener in step. */
static void lanes_start_backoff(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *lost = &link->lanes[lane];
  uint64_t delay_ns =
      lanes_doubled(FAILOVER_BACKOFF_MIN_NS, lost->failures++, FAILOVER_BACKOFF_MAX_NS);
  lost->retry_ns = now_ns + delay_ns - random_next(&link->random) % (delay_ns / 2);
}

/* The owner shall close what it has of the lane, up to this epoch. */
static void lanes_order_close(struct link *link, unsigned lane, uint32_t epoch) {
  struct link_lane *closed = &link->lanes[lane];
  if ((link->close & lane_bit(lane)) == 0 || epoch > closed->close_epoch) {
    closed->close_epoch = epoch;
    closed->close_reason = LINK_CLOSE_OVER;
  }
  link->close |= lane_bit(lane);
}

void lanes_hurry(struct link *link, uint64_t now_ns) {
  for (uint64_t lanes = link->lost; lanes != 0; lanes &= lanes - 1) {
    struct link_lane *lost = &link->lanes[__builtin_ctzll(lanes)];
    if (lost->retry_ns > now_ns + FAILOVER_BACKOFF_MAX_NS && lost->epoch != UINT32_MAX) {
      lost->retry_ns = now_ns + FAILOVER_BACKOFF_MIN_NS;
    }
  }
  lanes_find_retry(link);
}

bool lanes_lose(struct link *link, unsigned lane, uint32_t epoch, bool is_loss, uint64_t now_ns) {
  struct link_lane *lost = &link->lanes[lane];
  bool was_up = (link->up & lane_bit(lane)) != 0;
  bool was_connecting = (link->connecting & lane_bit(lane)) != 0;
  if (epoch != lost->epoch || (!was_up && !was_connecting)) {
    return false;
  }
  lanes_start_backoff(link, lane, now_ns);
  lanes_move(link, lane, LINK_LANE_LOST);
  if (!was_up) {
    return false;
  }
  lost->counts.losses += is_loss;
  lost->fenced_epoch = epoch > lost->fenced_epoch ? epoch : lost->fenced_epoch;
  if (link->up == 0) {
    link->down_since_ns = now_ns;
    lanes_grow(link); /* this path may be gone for good, and others not tried yet */
    lanes_hurry(link, now_ns);
  }
  lanes_drop(link, lane);
  return true;
}

bool lanes_fence(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  struct link_lane *fenced = &link->lanes[lane];
  if (epoch > fenced->fenced_epoch) {
    fenced->fenced_epoch = epoch;
  }
  if ((link->up & lane_bit(lane)) == 0 || fenced->epoch > epoch) {
    return false;
  }
  lanes_order_close(link, lane, fenced->epoch);
  return lanes_lose(link, lane, fenced->epoch, true, now_ns);
}

void lanes_cut(struct link *link, unsigned lane, enum link_close_reason reason, uint64_t now_ns) {
  struct link_lane *cut = &link->lanes[lane];
  if (!lanes_fence(link, lane, cut->epoch, now_ns)) {
    return;
  }
  cut->close_reason = reason;
  if (reason == LINK_CLOSE_STALLED && cut->stalls++ > 0 && link->up != 0) {
    cut->retry_ns = now_ns + lanes_doubled(FAILOVER_STALL_BACKOFF_NS, cut->stalls - 2,
                                           FAILOVER_STALL_BACKOFF_MAX_NS);
    lanes_find_retry(link);
  }
}

void lanes_leave(struct link *link, unsigned lane) {
  struct link_lane *left = &link->lanes[lane];
  left->fenced_epoch = left->epoch;
  lanes_move(link, lane, LINK_LANE_CLOSED);
  lanes_order_close(link, lane, left->epoch);
  lanes_drop(link, lane);
}

bool lanes_refuse(struct link *link, unsigned lane, uint32_t epoch) {
  if ((link->connecting & lane_bit(lane)) == 0 || link->lanes[lane].epoch != epoch) {
    return false;
  }
  lanes_move(link, lane, LINK_LANE_CLOSED);
  link->ceiling = lane > 0 && lane < link->ceiling ? lane : link->ceiling;
  return true;
}

void link_stands_still(struct link *link, unsigned lane) {
  if ((link->still & lane_bit(lane)) != 0) {
    return;
  }
  link->still |= lane_bit(lane);
  lanes_announce_again(link);
  if (link->config.role == LINK_SENDER) {
    link->taken.requested = 0; /* ask again on another lane */
    if ((link->up & ~link->still) == 0) {
      lanes_keep_spare(link);
    }
  } else if (!link->is_detached) {
    receive_tell_again(link);
  }
}

/* ---- a lane begins ---- */

bool lanes_come_up(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  struct link_lane *risen = &link->lanes[lane];
  enum link_lane_state state = link_lane_state_of(link, lane);
  bool is_expected = link->config.role == LINK_SENDER && state == LINK_LANE_CONNECTING
                         ? epoch == risen->epoch
                         : epoch > risen->epoch;
  if (!is_expected || epoch <= risen->fenced_epoch || state == LINK_LANE_UP) {
    lanes_order_close(link, lane, epoch);
    if (state == LINK_LANE_CONNECTING) {
      lanes_lose(link, lane, epoch, true, now_ns);
    }
    return false;
  }
  risen->epoch = epoch;
  lanes_move(link, lane, LINK_LANE_UP);
  link->announce &= ~lane_bit(lane);
  return true;
}

static bool lanes_open(struct link *link, struct link_order *order, uint64_t now_ns) {
  uint64_t ready = lanes_unopened(link);
  uint64_t waiting = now_ns >= link->retry_ns ? link->lost & lanes_goal(link) : 0;
  for (; waiting != 0; waiting &= waiting - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(waiting);
    ready |= now_ns >= link->lanes[lane].retry_ns ? lane_bit(lane) : 0;
  }
  if (ready == 0) {
    return false;
  }
  unsigned lane = (unsigned)__builtin_ctzll(ready);
  struct link_lane *opened = &link->lanes[lane];
  /* Epochs that the peer has fenced already, perhaps before we knew of them, are never used. */
  uint32_t last = opened->epoch > opened->fenced_epoch ? opened->epoch : opened->fenced_epoch;
  if (last == UINT32_MAX) {
    opened->retry_ns = LINK_NO_DEADLINE;
    lanes_find_retry(link);
    return false;
  }
  opened->epoch = last + 1;
  lanes_move(link, lane, LINK_LANE_CONNECTING);
  *order = (struct link_order){ .kind = LINK_ORDER_OPEN, .lane = lane, .epoch = opened->epoch };
  return true;
}

bool lanes_next_order(struct link *link, struct link_order *order, uint64_t now_ns) {
  if (link->close != 0) {
    unsigned lane = (unsigned)__builtin_ctzll(link->close);
    link->close &= link->close - 1;
    *order = (struct link_order){ .kind = LINK_ORDER_CLOSE,
                                  .lane = lane,
                                  .epoch = link->lanes[lane].close_epoch,
                                  .reason = link->lanes[lane].close_reason };
    return true;
  }
  return lanes_open(link, order, now_ns);
}

/* ---- the link fails ---- */

void receive_drop_arrivals(struct link *link) {
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    struct link_lane *receiving = &link->lanes[lane];
    if (arrival_is_for_message(receiving->arrival) || receiving->arrival == ARRIVAL_AGAIN) {
      receiving->arrival = ARRIVAL_NOWHERE;
      receiving->buffer = link->nowhere;
    }
  }
  link->arriving = 0;
}

void link_fail(struct link *link, int error) {
  assert(error < 0);
  if (link->status == 0) {
    link->status = error;
    bool is_peer_gone = link->is_peer_closed || link->peer_error != 0;
    link->farewell = is_peer_gone ? FAREWELL_NONE : FAREWELL_DUE;
    receive_drop_arrivals(link);
  }
}

void link_fail_because(struct link *link, int error, const char *reason) {
  if (link->status == 0) {
    snprintf(link->reason, sizeof link->reason, "%s", reason);
    link_fail(link, error);
  }
}
