/* SPDX-License-Identifier: Apache-2.0 */
/* link_time: timeouts of a link: silent peers, stalled lanes, deadlines. The
 * clocks are in liveness.h and failover.h; here is what follows from them. */
#include <errno.h>

#include "net_plugin/link/link_state.h"

/* What the user waits for cannot come without the peer. */
static bool link_needs_peer(const struct link *link) {
  if (link->is_peer_closed) {
    return false;
  }
  if (link->config.role == LINK_SENDER) {
    return link->outgoing.retired < link->outgoing.posted;
  }
  return !link->is_detached && link->incoming.completed < link->incoming.posted;
}

/* The same, and there is a lane to ask it. */
static bool link_is_waiting(const struct link *link) {
  return link->failover.up != 0 && link_needs_peer(link);
}

/* Nothing is heard on any lane. Flows that are all up and all dead exist: whatever keeps state
 * between the hosts forgot them, or they wait for long before they send again. A new one works, and
 * then the others are cut. A peer that is stopped comes to no harm: one lane is reconnected, and
 * what waits for long, once in a silence; the only one not while its host answers. */
static void link_try_new_lane(struct link *link, uint64_t now_ns) {
  uint64_t quiet_ns = liveness_quiet_since_ns(&link->liveness);
  if (link->config.role != LINK_SENDER || link->rescued_ns == quiet_ns) {
    return;
  }
  uint64_t up = link->failover.up;
  bool is_alone = (up & (up - 1)) == 0;
  if (is_alone && (!liveness_is_in_doubt(&link->liveness, now_ns) ||
                   liveness_is_host_there(&link->liveness, now_ns))) {
    return;
  }
  if (!failover_grow(&link->failover) && (link->failover.lost | link->failover.connecting) == 0) {
    link_cut_lane(link, (unsigned)__builtin_ctzll(up), LINK_CLOSE_SILENT, now_ns);
  }
  failover_hurry(&link->failover, now_ns);
  link->rescued_ns = quiet_ns;
}

static void link_listen(struct link *link, uint64_t now_ns) {
  struct liveness *liveness = &link->liveness;
  if (liveness_is_dead(liveness, now_ns)) {
    bool is_host_there = liveness->answered_ns + liveness->timeout_ns > now_ns;
    link_fail(link, is_host_there ? -ETIME : -EHOSTDOWN);
    return;
  }
  link->ping |= liveness_ask(liveness, link->failover.up, link->heard, now_ns);
  if (liveness_is_in_doubt(liveness, now_ns)) {
    link_try_new_lane(link, now_ns);
  }
}

static bool link_is_in_doubt(const struct link *link, uint64_t now_ns) {
  return link_is_waiting(link) && liveness_is_in_doubt(&link->liveness, now_ns);
}

bool link_wants_evidence(const struct link *link, uint64_t now_ns) {
  return link->status == 0 && link_is_in_doubt(link, link_later(link, now_ns));
}

void link_host_answered(struct link *link, uint64_t when_ns, uint64_t now_ns) {
  now_ns = link_note_time(link, now_ns);
  liveness_answered(&link->liveness, when_ns < now_ns ? when_ns : now_ns);
}

/* When lanes that come up and bring nothing across are worth a warning, or the end: that of a path
 * on which none comes up, since this one may pass data again as well. */
static uint64_t link_stuck_until_ns(const struct link *link, bool is_end) {
  if (link->stuck_ns == 0 || link->vain_lanes < (is_end ? LINK_VAIN_LANES : 1)) {
    return LINK_NO_DEADLINE;
  }
  return link->stuck_ns + (is_end ? link->liveness.timeout_ns : link->liveness.doubt_ns);
}

/* Has a lane come up since the last try began, and is it still up? */
static bool link_has_new_lane(const struct link *link) {
  for (uint64_t lanes = link->failover.up; lanes != 0; lanes &= lanes - 1) {
    if (link->lanes[__builtin_ctzll(lanes)].up_ns >= link->last_try_ns) {
      return true;
    }
  }
  return false;
}

/* The last acknowledgements may have been lost, and a stream that has lost a large frame carries no
 * ABORT behind it: a new lane is to do that, unless its first WINDOW tells of something new
 * (send_window_arrived). If none comes up there is no path, which may come back, and be another
 * one. */
static void link_end_stuck(struct link *link, uint64_t now_ns) {
  if (link->last_try_ns == 0) {
    link->last_try_ns = now_ns;
    if (link->failover.up != 0) {
      link_cut_lane(link, (unsigned)__builtin_ctzll(link->failover.up), LINK_CLOSE_SILENT, now_ns);
    }
  } else if (now_ns < link->last_try_ns + LINK_LAST_TRY_NS) {
    return;
  } else if (link_has_new_lane(link)) {
    link_fail(link, -ECOMM);
  } else {
    link->last_try_ns = 0;
    link->vain_lanes = 0;
    link->stuck_ns = now_ns;
  }
}

/* No lane is up: since when nothing is heard. The last lanes may have been silent before. */
static uint64_t link_down_since_ns(const struct link *link) {
  uint64_t down_ns = link->failover.down_since_ns;
  uint64_t silent_ns = link->now_ns - liveness_silence_ns(&link->liveness, link->now_ns);
  return link_needs_peer(link) && silent_ns < down_ns ? silent_ns : down_ns;
}

/* When the user is told so. */
static uint64_t link_no_lane_ns(const struct link *link) {
  bool has_none = link->failover.up == 0 && !link->is_peer_closed;
  return has_none ? link_down_since_ns(link) + link->liveness.doubt_ns : LINK_NO_DEADLINE;
}

struct link_health link_health(const struct link *link, uint64_t now_ns) {
  const struct liveness *liveness = &link->liveness;
  now_ns = link_later(link, now_ns);
  if (link->status != 0) {
    return (struct link_health){ LINK_WELL, 0 };
  }
  if (now_ns >= link_stuck_until_ns(link, false)) {
    return (struct link_health){ LINK_STUCK, link->stuck_ns };
  }
  if (now_ns >= link_no_lane_ns(link)) {
    return (struct link_health){ LINK_NO_ANSWER, link_down_since_ns(link) };
  }
  if (link_is_in_doubt(link, now_ns)) {
    bool is_host_there = liveness_is_host_there(liveness, now_ns);
    return (struct link_health){ is_host_there ? LINK_STOPPED : LINK_NO_ANSWER,
                                 now_ns - liveness_silence_ns(liveness, now_ns) };
  }
  return (struct link_health){ LINK_WELL, 0 };
}

/* The state of the lanes' clocks. */
struct watch {
  bool is_busy;     /* some clock runs */
  uint64_t suspect; /* lanes whose clock runs for rather long */
  uint64_t overdue; /* lanes that have used up their time */
  uint64_t stalled; /* of these, those that are stalled although the peer was heard since */
  uint64_t mute;    /* of these, those on which nothing at all was heard */
};

static struct watch link_find_stalled(const struct link *link, uint64_t up, uint64_t now_ns) {
  const struct liveness *liveness = &link->liveness;
  struct watch found = { .is_busy = false };
  bool is_alone = (up & (up - 1)) == 0;
  bool is_sender = link->config.role == LINK_SENDER;
  for (uint64_t lanes = up; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t bytes = link->lanes[lane].in_flight_bytes;
    bool has_bytes = link->lanes[lane].in_flight > 0;
    if (!has_bytes && !liveness_owes_answer(liveness, lane)) {
      continue;
    }
    uint64_t start_ns = liveness_start_ns(liveness, lane, has_bytes, is_alone);
    uint32_t ps_per_byte = is_sender ? policy_ps_per_byte(link->policy, lane) : 0;
    bool is_known = ps_per_byte > 0 || (!has_bytes && is_sender);
    if (is_alone && has_bytes && !is_known) { /* perhaps its chunks take longer than the limit */
      uint64_t moved_ns = link->lanes[lane].tail.moved_ns;
      start_ns = moved_ns > start_ns ? moved_ns : start_ns;
    }
    uint64_t limit_ns = liveness_limit_ns(liveness, bytes, ps_per_byte, is_known, is_alone);
    found.is_busy = true;
    found.suspect |= now_ns >= start_ns + LIVENESS_WATCH_NS ? lane_bit(lane) : 0;
    bool is_overdue = now_ns >= start_ns + limit_ns;
    bool is_stalled = is_overdue && liveness->spoke_ns >= start_ns + limit_ns;
    bool is_mute = is_stalled && liveness->lanes[lane].spoke_ns <= start_ns;
    found.overdue |= is_overdue ? lane_bit(lane) : 0;
    found.stalled |= is_stalled ? lane_bit(lane) : 0;
    found.mute |= is_mute ? lane_bit(lane) : 0;
  }
  return found;
}

/* Lanes that may have swallowed what the peer needs to know; *is_busy: or may have. */
static uint64_t link_find_doubtful(const struct link *link, bool *is_busy, uint64_t now_ns) {
  uint64_t doubtful = 0;
  for (uint64_t lanes = link->failover.up; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    if (liveness_is_doubtful(&link->liveness, lane) &&
        !liveness_owes_answer(&link->liveness, lane)) {
      *is_busy = true;
      bool is_due = now_ns >= link->lanes[lane].told_ns + LIVENESS_WATCH_NS;
      doubtful |= is_due ? lane_bit(lane) : 0;
    }
  }
  return doubtful;
}

/* Lanes that are stalled while others move are cut. Those first on which nothing at all is
 * heard; of the others only one at a time, because their acknowledgements may have been lost on a
 * lane that is worse, and are sent again when that one is gone. */
static void link_watch_lanes(struct link *link, uint64_t now_ns) {
  uint64_t up = link->failover.up;
  uint64_t quiet_ns = now_ns - link->liveness.spoke_ns;
  struct watch found = link_find_stalled(link, up, now_ns);
  if (link_is_waiting(link)) {
    link->ping |= link_find_doubtful(link, &found.is_busy, now_ns);
  }
  link->watch_ns = found.is_busy ? now_ns + LIVENESS_WATCH_NS : LINK_NO_DEADLINE;
  uint64_t cut = found.mute != 0 ? found.mute : found.stalled & -found.stalled;
  for (uint64_t lanes = cut; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    link->lanes[lane].counts.stalls_cut++;
    link_cut_lane(link, lane, LINK_CLOSE_STALLED, now_ns);
  }
  if (cut != 0) {
    liveness_pardon(&link->liveness, link->failover.up, now_ns);
  }
  bool is_stuck = link->stuck_ns != 0 && link->vain_lanes > 0;
  if (is_stuck && now_ns >= link->stuck_ns + LIVENESS_RESCUE_NS) {
    failover_hurry(&link->failover, now_ns); /* the path may be there again for any lane */
  }
  bool has_others = (up & (up - 1)) != 0;
  if (found.suspect && has_others && quiet_ns >= LIVENESS_WATCH_NS / 2) {
    bool are_acked = link_measure_tails(link, found.suspect);
    link->ping |= are_acked ? found.suspect : link->failover.up;
  }
  if (link_is_waiting(link) && found.overdue == up && quiet_ns >= LIVENESS_RESCUE_NS) {
    link_try_new_lane(link, now_ns);
  }
}

void link_time_passed(struct link *link, uint64_t now_ns) {
  now_ns = link_note_time(link, now_ns);
  if (link->status != 0) {
    return;
  }
  if (link->config.role == LINK_RECEIVER) {
    credit_time_passed(&link->given, now_ns);
  }
  if (!link->is_peer_closed && failover_is_timed_out(&link->failover, now_ns)) {
    link_fail(link, -ETIMEDOUT);
    return;
  }
  if (now_ns >= link_stuck_until_ns(link, true)) {
    link_end_stuck(link, now_ns);
  }
  if (now_ns >= link->tail_ns) {
    link_look_at_tails(link, now_ns);
  }
  if (now_ns >= link->partial_ns) {
    link_look_at_partial(link, now_ns);
  }
  if (now_ns >= link->watch_ns) {
    link_watch_lanes(link, now_ns);
    bool may_reconnect = link->config.role == LINK_SENDER && !link->is_peer_closed;
    int slow = may_reconnect ? policy_reconnect(link->policy, now_ns) : -1;
    if (slow >= 0) { /* it has a bad path */
      link->lanes[slow].counts.slow_reconnects++;
      link_cut_lane(link, (unsigned)slow, LINK_CLOSE_SLOW, now_ns);
    }
  }
  if (link_is_waiting(link)) {
    link_listen(link, now_ns);
  }
}

uint64_t link_next_deadline_ns(struct link *link) {
  bool is_receiver = link->config.role == LINK_RECEIVER;
  const uint64_t clocks_ns[] = {
    link->is_peer_closed ? LINK_NO_DEADLINE : failover_next_deadline_ns(&link->failover),
    is_receiver ? credit_next_ns(&link->given) : LINK_NO_DEADLINE,
    link->watch_ns,
    link->tail_ns,
    link->partial_ns,
    link->last_try_ns != 0
        ? link->last_try_ns + LINK_LAST_TRY_NS
        : link_stuck_until_ns(link, link->now_ns >= link_stuck_until_ns(link, false)),
    link->now_ns < link_no_lane_ns(link) ? link_no_lane_ns(link) : LINK_NO_DEADLINE,
    link_is_waiting(link) ? liveness_next_ns(&link->liveness) : LINK_NO_DEADLINE,
  };
  link->due_ns = LINK_NO_DEADLINE;
  for (unsigned i = 0; i < sizeof clocks_ns / sizeof *clocks_ns && link->status == 0; i++) {
    link->due_ns = clocks_ns[i] < link->due_ns ? clocks_ns[i] : link->due_ns;
  }
  /* A fact may put a deadline into the past. That is not time in which the owner was away. */
  return link->due_ns = link_later(link, link->due_ns);
}
