/* SPDX-License-Identifier: Apache-2.0 */
/* link_drop: what goes with a lane that is lost, fenced, cut or left, or with a link that fails,
 * and what is told again for it. */
#include <assert.h>
#include <stdio.h>

#include "net_plugin/link/link_state.h"

/* ---- a lane ---- */

/* The lane is lost with something in flight. A lane that was up before anything was stuck says
 * nothing about the path that those have which replace it. */
static void send_note_vain_lane(struct link *link, unsigned lane) {
  uint64_t moved_ns = link->lanes[lane].moved_ns;
  if (link->stuck_ns == 0) {
    link->stuck_ns = moved_ns > link->acked_ns ? moved_ns : link->acked_ns;
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
  carry_stops(link, lane, link->now_ns);
  if (!was_rdma) {
    carry_settle(link, lane);
  }
  link->failover.announce |= lane_bit(lane) & link->failover.lost;
  link->taken.requested = 0; /* a REQUEST may have been lost with it: ask again */
}

/* WINDOW frames may have been lost with a lane, or waited for one: all of it is sent again. */
void receive_tell_again(struct link *link) {
  link->remote_buffers_sent = 0;
  for (uint64_t lanes = link->failover.up; lanes != 0; lanes &= lanes - 1) {
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

void link_lane_dropped(struct link *link, unsigned lane) {
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
  failover_announce_again(&link->failover);
}

void link_fence_lane(struct link *link, unsigned lane, uint32_t epoch, uint64_t now_ns) {
  if (failover_fence(&link->failover, lane, epoch, now_ns)) {
    link_lane_dropped(link, lane);
  }
}

void link_cut_lane(struct link *link, unsigned lane, enum link_close_reason reason,
                   uint64_t now_ns) {
  if (failover_cut(&link->failover, lane, reason, now_ns)) {
    link_lane_dropped(link, lane);
  }
}

void link_stands_still(struct link *link, unsigned lane) {
  if ((link->still & lane_bit(lane)) != 0) {
    return;
  }
  link->still |= lane_bit(lane);
  failover_announce_again(&link->failover);
  if (link->config.role == LINK_SENDER) {
    link->taken.requested = 0; /* ask again on another lane */
    if ((link->failover.up & ~link->still) == 0) {
      failover_keep_spare(&link->failover);
    }
  } else if (!link->is_detached) {
    receive_tell_again(link);
  }
}

/* ---- the link ---- */

/* Only a receiver has such arrivals. */
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
