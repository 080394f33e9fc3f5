/* SPDX-License-Identifier: Apache-2.0 */
/* link_view: what a link shows of itself, for messages, statistics and tests. */
#include <assert.h>

#include "net_plugin/link/link_state.h"

void link_view_lane(const struct link *link, unsigned lane, struct link_lane_view *view) {
  assert(lane < link->config.policy.lanes);
  const struct link_lane *seen = &link->lanes[lane];
  *view = (struct link_lane_view){
    .state = link_lane_state_of(link, lane),
    .epoch = seen->epoch,
    .counts = seen->counts,
    .bytes_acked = seen->policy.acked_bytes,
    .heard_ns = seen->spoke_ns,
  };
  if (link->config.role == LINK_SENDER) {
    view->outstanding_bytes = link_is_lane_up(link, lane) ? seen->policy.in_flight_bytes : 0;
    view->ps_per_byte = policy_ps_per_byte(link->policy, lane);
    view->limit = policy_limit_of(link->policy, lane);
  }
}

const char *link_close_reason_text(enum link_close_reason reason) {
  static const char *const texts[] = {
    [LINK_CLOSE_OVER] = "it is over",
    [LINK_CLOSE_STALLED] = "it stalled while others did not; its data moves to them",
    [LINK_CLOSE_SLOW] = "it was much slower than the others; another path is tried",
    [LINK_CLOSE_SILENT] = "the peer is silent on all flows; a new one is tried",
    [LINK_CLOSE_BETTER] = "RDMA can be tried again",
  };
  return texts[reason];
}

const char *link_limit_name(enum policy_limit limit) {
  static const char *const names[] = { "-", "application", "CPU", "peer", "network" };
  return names[limit];
}

void link_view(const struct link *link, struct link_view *view) {
  bool is_sender = link->config.role == LINK_SENDER;
  *view = (struct link_view){
    .posted = is_sender ? link->outgoing.posted : link->incoming.posted,
    .completed = is_sender ? link->outgoing.completed : link->incoming.completed,
    .credited = is_sender ? link->taken.granted : link->incoming.granted,
    .counts = link->counts,
    .peer_error = link->peer_error,
    .peer_reason = link->peer_reason,
    .vain_lanes = link->vain_lanes,
    .lanes_up = (unsigned)__builtin_popcountll(link->up),
    .lanes_wanted =
        (unsigned)__builtin_popcountll(link->up | (is_sender ? lanes_goal(link) : link->lost)),
  };
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    const struct link_lane *seen = &link->lanes[lane];
    view->chunks_requeued += seen->counts.requeued;
    view->losses += seen->counts.losses;
    view->stalls_cut += seen->counts.stalls_cut;
    view->slow_reconnects += seen->counts.slow_reconnects;
    uint64_t heard_ns = seen->spoke_ns;
    view->heard_ns = heard_ns > view->heard_ns ? heard_ns : view->heard_ns;
  }
}

bool link_view_oldest(const struct link *link, struct link_message_view *view) {
  bool is_waiting;
  if (link->config.role == LINK_SENDER) {
    const struct outgoing_ring *ring = &link->outgoing;
    const struct outgoing *oldest = &ring->slots[ring->retired % LINK_WINDOW];
    *view = (struct link_message_view){ ring->retired, oldest->bytes, oldest->acked,
                                        oldest->posted_ns, 0 };
    is_waiting = ring->retired < ring->posted;
  } else {
    const struct incoming_ring *ring = &link->incoming;
    const struct incoming *oldest = &ring->slots[incoming_slot(ring->completed)];
    *view = (struct link_message_view){ ring->completed,
                                        oldest->is_known ? oldest->bytes : oldest->capacity,
                                        oldest->landed, oldest->posted_ns, 0 };
    is_waiting = ring->completed < ring->posted;
  }
  view->still_ns = link->moved_ns > view->posted_ns ? link->moved_ns : view->posted_ns;
  return is_waiting;
}
