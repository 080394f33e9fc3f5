/* SPDX-License-Identifier: Apache-2.0 */
/* failover: the states of every lane, its epochs, when to reconnect, and when the link times out.
 * Owns: only its own struct.  Threads: the link's.
 * Blocks: never.  Fails: cannot; a fact of an older epoch is refused by returning false.
 *
 *              order OPEN (sender)             up
 *    CLOSED ---------------------> CONNECTING ----> UP
 *         |                          ^     |         |
 *         | up (lane 0, receiver)    |     | failed  | lost, fenced
 *         +--------> UP              |     v         |
 *                          OPEN with +---- LOST <----+
 *                         epoch + 1,        |
 *                          after a backoff  +------> UP  (receiver: the peer reconnects)
 *
 *   CLOSED      never opened, left because it is not wanted any more (no loss), or refused by the
 * peer. The sender opens the lanes with the lowest numbers, as many as failover_want says.
 *   CONNECTING  sender only: an OPEN order was given, its result is not reported yet.
 *   UP          carries frames of its epoch.
 *   LOST        broken, cut by us, or closed by the peer. The sender reconnects it after a backoff
 *               with the next epoch; on the receiver it waits for the peer to do so.
 *
 * A LOST lane is fenced: on this side no frame of the old epoch counts any more, and the peer is
 * told (CLOSED). What it carried is sent again, but of an RDMA lane, which may still write, not
 * before the peer has closed its end: it says so, or a reconnect's handshake passes.
 *
 * Invariants, asserted by link_check (tests/lib):
 *  1. The state masks are disjoint.
 *  2. A lane that is UP has an epoch that is not fenced.
 *  3. Only the sender has lanes CONNECTING. */
#ifndef NET_PLUGIN_LINK_FAILOVER_H
#define NET_PLUGIN_LINK_FAILOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link_lane.h"

#define FAILOVER_NO_CEILING 64u

struct failover {
  const struct link_config *config; /* the link's */
  uint64_t up, connecting, lost;    /* lanes in these states: nothing else says it; all others are
                                       CLOSED */
  uint64_t announce;                /* a CLOSED is to be written */
  uint64_t close;                   /* CLOSE orders to give */
  unsigned wanted;                  /* sender: so many lanes are to be open */
  unsigned least;                   /* sender: as wanted: 1, or policy_first_lanes in need */
  unsigned ceiling;                 /* sender: this lane and higher ones were refused */
  bool keeps_spare;                 /* sender: lanes are open for what others lose */
  bool may_dial;
  uint64_t retry_ns;      /* sender: the earliest retry_ns of lost lanes */
  uint64_t down_since_ns; /* valid while no lane is up */
  uint64_t random;
  struct link_lane *lanes;
};

/* lanes: zeroed, config->policy.lanes of them. config: read as long as it is used; its timeout_ns
 * is at most LINK_NO_DEADLINE / 2. */
void failover_init(struct failover *failover, struct link_lane *lanes,
                   const struct link_config *config, uint64_t now_ns);

static inline enum link_lane_state failover_state(const struct failover *failover, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  return (failover->up & bit) != 0           ? LINK_LANE_UP
         : (failover->connecting & bit) != 0 ? LINK_LANE_CONNECTING
         : (failover->lost & bit) != 0       ? LINK_LANE_LOST
                                             : LINK_LANE_CLOSED;
}

/* The lane is up. false: the epoch is over already, or an older one is still UP; a CLOSE order was
 * queued. */
bool failover_come_up(struct failover *failover, unsigned lane, uint32_t epoch, uint64_t now_ns);

enum failover_end {
  FAILOVER_BROKEN,
  FAILOVER_LEFT, /* the peer closed it in good order: not counted among the losses */
};

/* The epoch is over, at least for new frames. true: the lane was UP with it and is LOST now.
 * A connect that failed is noted, anything older changes nothing. */
bool failover_lose(struct failover *failover, unsigned lane, uint32_t epoch, enum failover_end end,
                   uint64_t now_ns);

/* The peer, or the owner on the peer's behalf, closes all epochs up to this one, even ones that are
 * not known here. true as above. */
bool failover_fence(struct failover *failover, unsigned lane, uint32_t epoch, uint64_t now_ns);

/* Our own decision: the lane is given up and closed. true as above. */
bool failover_cut(struct failover *failover, unsigned lane, enum link_close_reason reason,
                  uint64_t now_ns);

/* Sender: no lane brings anything across. Lost ones that would wait for long are tried soon. */
void failover_hurry(struct failover *failover, uint64_t now_ns);

/* The owner shall close what it has of the lane, up to this epoch. */
void failover_order_close(struct failover *failover, unsigned lane, uint32_t epoch);

/* Sender: so many lanes are to be open, which lets those be tried that were refused if it is more
 * than before. The lanes that are up and not wanted, while no wanted one is lost; those of
 * policy_first_lanes stay. Called often. */
uint64_t failover_want(struct failover *failover, unsigned lanes);
/* Sender: such a lane, with nothing in flight, is closed in good order. */
void failover_leave(struct failover *failover, unsigned lane);
/* The lane could not be opened, and will not be: one end has no descriptor for it. false: the epoch
 * is over. */
bool failover_refuse(struct failover *failover, unsigned lane, uint32_t epoch);
/* Sender: paths may be gone for good, and others not tried yet: policy_first_lanes are to be open.
 * false: they are open, or were ordered before. */
bool failover_grow(struct failover *failover);

/* Sender: none of the lanes that are up moves. From now on one more is to be open, if the link may
 * have so many. */
void failover_keep_spare(struct failover *failover);

/* Frames may have been lost with a lane: announce once more what the peer must know. */
void failover_announce_again(struct failover *failover);

/* An acknowledgement came: the lane works, a later loss is a new story. */
static inline void failover_proved(struct failover *failover, unsigned lane) {
  failover->lanes[lane].failures = 0;
  failover->lanes[lane].stalls = 0;
}

/* Sender: lanes that are to be open. */
static inline uint64_t failover_goal(const struct failover *failover) {
  return lanes_below(failover->wanted > failover->least ? failover->wanted : failover->least);
}
/* Sender: of these, the ones that are CLOSED and can be opened. The first lane comes by itself. */
static inline uint64_t failover_unopened(const struct failover *failover) {
  uint64_t seen = failover->up | failover->connecting | failover->lost | 1;
  return failover_goal(failover) & lanes_below(failover->ceiling) & ~seen;
}

/* Whether failover_next_order may have one: asked for every frame, mostly in vain. */
static inline bool failover_may_order(const struct failover *failover, uint64_t now_ns) {
  bool may_open = now_ns >= failover->retry_ns || failover_unopened(failover) != 0;
  return failover->close != 0 || (failover->may_dial && may_open);
}
/* Only then. */
bool failover_next_order(struct failover *failover, struct link_order *order, uint64_t now_ns);

/* When failover_next_order has an OPEN order, or when failover_is_timed_out becomes true. */
static inline uint64_t failover_next_deadline_ns(const struct failover *failover) {
  uint64_t open_ns = failover->may_dial ? failover->retry_ns : LINK_NO_DEADLINE;
  uint64_t end_ns = failover->down_since_ns + failover->config->timeout_ns;
  return failover->up == 0 && end_ns < open_ns ? end_ns : open_ns;
}
/* This process did not run for gap_ns: no lane could come up. At least half of the time is left. */
void failover_resumed(struct failover *failover, uint64_t gap_ns, uint64_t now_ns);
static inline bool failover_is_timed_out(const struct failover *failover, uint64_t now_ns) {
  return failover->up == 0 && now_ns >= failover->down_since_ns + failover->config->timeout_ns;
}

#endif
