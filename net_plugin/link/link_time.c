/* SPDX-License-Identifier: Apache-2.0 */
/* link_time: what time brings: is the peer still alive, and which lanes are stalled although it is?
 *
 * The peer. While the user waits for something, silence is measured: from the last frame on any
 * lane, or from when the user began to wait. After each interval a PING is sent, first on the lane
 * that was heard last, then on all of them, since that one may have become a black hole. After two
 * the peer is in doubt. If its host answers (its kernel acknowledges what its process does not
 * read), the process is stopped, or gets no CPU. If not, nothing is known: host or path may come
 * back. The peer is dead when nothing of it, nor of its host, was heard for the timeout, and at the
 * latest after the stopped timeout. A peer that hears nothing sends PINGs, too. They show that it
 * is alive, not that it hears us, so they do not count as an answer. A link whose user waits for
 * nothing sends no PINGs and has no deadline.
 *
 * A lane. Its clock runs while it has bytes in flight: from its last acknowledgement, or from when
 * the first bytes went out; without bytes, while it has not answered a PING. It is stalled if it
 * has used up its time and the peer was heard after that, on any lane. So that there is something
 * to hear, PINGs go out on all lanes while one is suspect. If the peer's kernel has acknowledged
 * all that the suspect lanes carried, its path works and its process is slow: then only they get
 * PINGs, so that the sockets of the others have no unread bytes, and end by a FIN if the process is
 * killed (setup/peering.h). A lane also gets a PING if it carried a frame on which the peer may
 * depend, and nothing was heard on it since.
 *
 * If all lanes have used up their time and the peer was not heard for LIVENESS_RESCUE_NS, either
 * the peer is stopped or all paths are gone: a new lane decides which (link_try_new_lane).
 *
 * Two pauses must not count as silence. When the peer was stopped for a while, nothing at all was
 * heard for LIVENESS_GAP_NS: lanes get their whole time again from the moment it is heard. A lane
 * that is alone may be a black hole towards the peer only, so that all that is heard are the PINGs
 * of a peer that hears nothing: for such a lane the gap is longer than the time between these.
 * When this process was stopped, the time in which it could not listen is left out
 * (link_resumed). An acknowledgement that such a pause delayed is no sample of a lane's rate
 * (liveness_has_paused). */
#include <errno.h>

#include "net_plugin/link/link_state.h"

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) {
  return a_ns < b_ns ? a_ns : b_ns;
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns) {
  return a_ns > b_ns ? a_ns : b_ns;
}

/* ---- the peer; only while the user waits and a lane is up ---- */

static uint64_t liveness_silent_since_ns(const struct link *link) {
  return later(link->liveness.spoke_ns, link->liveness.waiting_ns);
}

static uint64_t liveness_silence_ns(const struct link *link, uint64_t now_ns) {
  uint64_t since_ns = liveness_silent_since_ns(link);
  return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* When the peer answered last, or the user began to wait for it. */
static uint64_t liveness_quiet_since_ns(const struct link *link) {
  return later(link->liveness.heard_ns, link->liveness.waiting_ns);
}

/* How often the peer was asked in this silence. */
static unsigned liveness_asks(const struct link *link) {
  return link->liveness.quiet_ns == liveness_quiet_since_ns(link) ? link->liveness.asks : 0;
}

static uint64_t liveness_ask_ns(const struct link *link) {
  uint64_t last_ns =
      liveness_asks(link) > 0 ? link->liveness.asked_ns : liveness_quiet_since_ns(link);
  return last_ns + link_interval_ns(link);
}

/* When the peer is dead if nothing more is heard of it. */
static uint64_t liveness_end_ns(const struct link *link) {
  uint64_t since_ns = liveness_silent_since_ns(link);
  return earlier(later(since_ns, link->liveness.answered_ns) + link->config.timeout_ns,
                 since_ns + link->config.stopped_timeout_ns);
}

/* When PINGs are due or the peer counts as silent. */
static uint64_t liveness_next_ns(const struct link *link) {
  uint64_t ask_ns = liveness_ask_ns(link);
  return liveness_asks(link) < 2 ? ask_ns : earlier(ask_ns, liveness_end_ns(link));
}

/* The lanes that shall be asked now. */
static uint64_t liveness_ask(struct link *link, uint64_t now_ns) {
  struct liveness *liveness = &link->liveness;
  if (now_ns < liveness_ask_ns(link)) {
    return 0;
  }
  liveness->asks = liveness_asks(link) + 1;
  liveness->quiet_ns = liveness_quiet_since_ns(link);
  liveness->asked_ns = now_ns;
  uint64_t heard = link->up & lane_bit(link->heard);
  return liveness->asks == 1 && heard != 0 ? heard : link->up;
}

/* Silent for so long that it matters whether its host answers, though it was asked. */
static bool liveness_is_in_doubt(const struct link *link, uint64_t now_ns) {
  return liveness_asks(link) > 0 && liveness_silence_ns(link, now_ns) >= link_doubt_ns(link);
}

/* Of a peer in doubt: its host has answered the last PING, or the one before. Between two PINGs
 * there may be more than an interval, and what was sent before the silence may be acknowledged in
 * its first 40 ms (TCP_DELACK_MIN). */
static bool liveness_is_host_there(const struct link *link, uint64_t now_ns) {
  return link->liveness.answered_ns + link_interval_ns(link) * 3 / 2 > now_ns;
}

/* Of a peer in doubt: it is to be declared dead. */
static bool liveness_is_dead(const struct link *link, uint64_t now_ns) {
  return liveness_asks(link) >= 2 && now_ns >= liveness_end_ns(link);
}

/* ---- lanes; each of them is up and has bytes in flight, or an unanswered PING ---- */

/* How long a lane may take for its bytes, or for an answer (0 bytes). is_known: its rate is, or
 * nothing is in the way of the answer. A lane that is alone gets more. */
static uint64_t liveness_limit_ns(const struct link *link, uint64_t bytes, uint32_t ps_per_byte,
                                  bool is_known, bool is_alone) {
  /* At most 2^28 bytes are on the way, so this stays below 2^63. */
  uint64_t limit_ns = bytes * ps_per_byte / 1000 * LIVENESS_STALL_FACTOR;
  limit_ns = later(limit_ns, is_known ? LIVENESS_STALL_NS : LIVENESS_STALL_UNKNOWN_NS);
  return is_alone ? later(limit_ns, link_interval_ns(link)) : limit_ns;
}

/* ---- this process did not run ---- */

/* So much later, but not after now. */
static void put_off(uint64_t *clock_ns, uint64_t gap_ns, uint64_t now_ns) {
  *clock_ns = earlier(*clock_ns + gap_ns, now_ns);
}

void link_resumed(struct link *link, uint64_t gap_ns, uint64_t now_ns) {
  struct liveness *liveness = &link->liveness;
  uint64_t half_ns = link->config.timeout_ns / 2;
  /* What was asked before is still not answered, but the time for it is longer. */
  uint64_t *clocks[] = { &liveness->spoke_ns, &liveness->heard_ns, &liveness->waiting_ns,
                         &liveness->quiet_ns, &liveness->asked_ns, &liveness->answered_ns,
                         &link->down_since_ns };
  for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    put_off(clocks[i], gap_ns, now_ns);
  }
  if (link->stuck_ns != 0) {
    put_off(&link->stuck_ns, gap_ns, now_ns);
  }
  if (liveness_silence_ns(link, now_ns) > half_ns) {
    liveness->waiting_ns = now_ns - half_ns;
  }
  if (link->down_since_ns + half_ns < now_ns) {
    link->down_since_ns = now_ns - half_ns;
  }
  liveness->revived_ns = liveness->rose_ns = now_ns;
}

/* ---- what follows ---- */

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
  return link->up != 0 && link_needs_peer(link);
}

/* Nothing is heard on any lane. Flows that are all up and all dead exist: whatever keeps state
 * between the hosts forgot them, or they wait for long before they send again. A new one works, and
 * then the others are cut. A peer that is stopped comes to no harm: one lane is reconnected, and
 * what waits for long, once in a silence; the only one not while its host answers. */
static void link_try_new_lane(struct link *link, uint64_t now_ns) {
  uint64_t quiet_ns = liveness_quiet_since_ns(link);
  if (link->config.role != LINK_SENDER || link->rescued_ns == quiet_ns) {
    return;
  }
  if (link_has_one_lane(link) &&
      (!liveness_is_in_doubt(link, now_ns) || liveness_is_host_there(link, now_ns))) {
    return;
  }
  if (!lanes_grow(link) && (link->lost | link->connecting) == 0) {
    lanes_cut(link, (unsigned)__builtin_ctzll(link->up), LINK_CLOSE_SILENT, now_ns);
  }
  lanes_hurry(link, now_ns);
  link->rescued_ns = quiet_ns;
}

static void link_listen(struct link *link, uint64_t now_ns) {
  if (liveness_is_dead(link, now_ns)) {
    bool is_host_there = link->liveness.answered_ns + link->config.timeout_ns > now_ns;
    link_fail(link, is_host_there ? -ETIME : -EHOSTDOWN);
    return;
  }
  link->ping |= liveness_ask(link, now_ns);
  if (liveness_is_in_doubt(link, now_ns)) {
    link_try_new_lane(link, now_ns);
  }
}

static bool link_is_in_doubt(const struct link *link, uint64_t now_ns) {
  return link_is_waiting(link) && liveness_is_in_doubt(link, now_ns);
}

bool link_wants_evidence(const struct link *link, uint64_t now_ns) {
  return link->status == 0 && link_is_in_doubt(link, link_later(link, now_ns));
}

void link_host_answered(struct link *link, uint64_t when_ns, uint64_t now_ns) {
  now_ns = link_note_time(link, now_ns);
  link->liveness.answered_ns = later(link->liveness.answered_ns, earlier(when_ns, now_ns));
}

/* When lanes that come up and bring nothing across are worth a warning, or the end: that of a path
 * on which none comes up, since this one may pass data again as well. */
static uint64_t link_stuck_until_ns(const struct link *link, bool is_end) {
  if (link->stuck_ns == 0 || link->vain_lanes < (is_end ? LINK_VAIN_LANES : 1)) {
    return LINK_NO_DEADLINE;
  }
  return link->stuck_ns + (is_end ? link->config.timeout_ns : link_doubt_ns(link));
}

/* Has a lane come up since the last try began, and is it still up? */
static bool link_has_new_lane(const struct link *link) {
  for (uint64_t lanes = link->up; lanes != 0; lanes &= lanes - 1) {
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
    if (link->up != 0) {
      lanes_cut(link, (unsigned)__builtin_ctzll(link->up), LINK_CLOSE_SILENT, now_ns);
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
  uint64_t down_ns = link->down_since_ns;
  uint64_t silent_ns = link->now_ns - liveness_silence_ns(link, link->now_ns);
  return link_needs_peer(link) && silent_ns < down_ns ? silent_ns : down_ns;
}

/* When the link fails for it. */
static uint64_t link_timeout_ns(const struct link *link) {
  bool has_none = link->up == 0 && !link->is_peer_closed;
  return has_none ? link->down_since_ns + link->config.timeout_ns : LINK_NO_DEADLINE;
}

/* When the user is told so. */
static uint64_t link_no_lane_ns(const struct link *link) {
  bool has_none = link->up == 0 && !link->is_peer_closed;
  return has_none ? link_down_since_ns(link) + link_doubt_ns(link) : LINK_NO_DEADLINE;
}

struct link_health link_health(const struct link *link, uint64_t now_ns) {
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
    bool is_host_there = liveness_is_host_there(link, now_ns);
    return (struct link_health){ is_host_there ? LINK_STOPPED : LINK_NO_ANSWER,
                                 now_ns - liveness_silence_ns(link, now_ns) };
  }
  return (struct link_health){ LINK_WELL, 0 };
}

/* The state of the lanes' clocks. */
struct watch {
  bool is_busy;      /* some clock runs */
  uint64_t doubtful; /* lanes that may have swallowed what the peer needs to know */
  uint64_t suspect;  /* lanes whose clock runs for rather long */
  uint64_t overdue;  /* lanes that have used up their time */
  uint64_t stalled;  /* of these, those that are stalled although the peer was heard since */
  uint64_t mute;     /* of these, those on which nothing at all was heard */
};

static struct watch link_look_at_clocks(const struct link *link, uint64_t now_ns) {
  struct watch found = { .is_busy = false };
  bool is_alone = link_has_one_lane(link);
  bool is_sender = link->config.role == LINK_SENDER, is_waiting = link_is_waiting(link);
  for (uint64_t lanes = link->up; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t bytes = link->lanes[lane].policy.in_flight_bytes;
    bool has_bytes = link->lanes[lane].in_flight > 0;
    bool owes_answer = liveness_owes_answer(link, lane);
    if (is_waiting && !owes_answer && liveness_is_doubtful(link, lane)) {
      bool is_due = now_ns >= link->lanes[lane].told_ns + LIVENESS_WATCH_NS;
      found.is_busy = true;
      found.doubtful |= is_due ? lane_bit(lane) : 0;
    }
    if (!has_bytes && !owes_answer) {
      continue;
    }
    uint64_t start_ns = liveness_start_ns(link, lane, has_bytes, is_alone);
    uint32_t ps_per_byte = is_sender ? policy_ps_per_byte(link->policy, lane) : 0;
    bool is_known = ps_per_byte > 0 || (!has_bytes && is_sender);
    if (is_alone && has_bytes && !is_known) { /* perhaps its chunks take longer than the limit */
      start_ns = later(start_ns, link->lanes[lane].tail.moved_ns);
    }
    uint64_t limit_ns = liveness_limit_ns(link, bytes, ps_per_byte, is_known, is_alone);
    found.is_busy = true;
    found.suspect |= now_ns >= start_ns + LIVENESS_WATCH_NS ? lane_bit(lane) : 0;
    bool is_overdue = now_ns >= start_ns + limit_ns;
    bool is_stalled = is_overdue && link->liveness.spoke_ns >= start_ns + limit_ns;
    bool is_mute = is_stalled && link->lanes[lane].spoke_ns <= start_ns;
    found.overdue |= is_overdue ? lane_bit(lane) : 0;
    found.stalled |= is_stalled ? lane_bit(lane) : 0;
    found.mute |= is_mute ? lane_bit(lane) : 0;
  }
  return found;
}

/* Lanes that were heard lately get their whole time again. */
static void link_pardon(struct link *link, uint64_t now_ns) {
  for (uint64_t lanes = link->up; lanes != 0; lanes &= lanes - 1) {
    struct link_lane *lane = &link->lanes[__builtin_ctzll(lanes)];
    lane->moved_ns = now_ns - lane->spoke_ns < LIVENESS_STALL_NS ? now_ns : lane->moved_ns;
  }
}

/* Lanes that are stalled while others move are cut. Those first on which nothing at all is
 * heard; of the others only one at a time, because their acknowledgements may have been lost on a
 * lane that is worse, and are sent again when that one is gone. */
static void link_watch_lanes(struct link *link, uint64_t now_ns) {
  uint64_t up = link->up;
  bool has_others = !link_has_one_lane(link);
  uint64_t quiet_ns = now_ns - link->liveness.spoke_ns;
  struct watch found = link_look_at_clocks(link, now_ns);
  link->ping |= found.doubtful;
  link->watch_ns = found.is_busy ? now_ns + LIVENESS_WATCH_NS : LINK_NO_DEADLINE;
  uint64_t cut = found.mute != 0 ? found.mute : found.stalled & -found.stalled;
  for (uint64_t lanes = cut; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    link->lanes[lane].counts.stalls_cut++;
    lanes_cut(link, lane, LINK_CLOSE_STALLED, now_ns);
  }
  if (cut != 0) {
    link_pardon(link, now_ns);
  }
  bool is_stuck = link->stuck_ns != 0 && link->vain_lanes > 0;
  if (is_stuck && now_ns >= link->stuck_ns + LIVENESS_RESCUE_NS) {
    lanes_hurry(link, now_ns); /* the path may be there again for any lane */
  }
  if (found.suspect != 0 && has_others && quiet_ns >= LIVENESS_WATCH_NS / 2) {
    bool are_acked = link_measure_tails(link, found.suspect);
    link->ping |= are_acked ? found.suspect : link->up;
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
  receive_time_passed(link, now_ns);
  if (now_ns >= link_timeout_ns(link)) {
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
      lanes_cut(link, (unsigned)slow, LINK_CLOSE_SLOW, now_ns);
    }
  }
  if (link_is_waiting(link)) {
    link_listen(link, now_ns);
  }
}

uint64_t link_next_deadline_ns(struct link *link) {
  const uint64_t clocks_ns[] = {
    link->may_dial ? link->retry_ns : LINK_NO_DEADLINE,
    link_timeout_ns(link),
    link->given.deadline_ns,
    link->given.opening_ns,
    link->watch_ns,
    link->tail_ns,
    link->partial_ns,
    link->last_try_ns != 0
        ? link->last_try_ns + LINK_LAST_TRY_NS
        : link_stuck_until_ns(link, link->now_ns >= link_stuck_until_ns(link, false)),
    link->now_ns < link_no_lane_ns(link) ? link_no_lane_ns(link) : LINK_NO_DEADLINE,
    link_is_waiting(link) ? liveness_next_ns(link) : LINK_NO_DEADLINE,
  };
  link->due_ns = LINK_NO_DEADLINE;
  for (unsigned i = 0; i < sizeof clocks_ns / sizeof *clocks_ns && link->status == 0; i++) {
    link->due_ns = earlier(link->due_ns, clocks_ns[i]);
  }
  /* A fact may put a deadline into the past. That is not time in which the owner was away. */
  return link->due_ns = link_later(link, link->due_ns);
}
