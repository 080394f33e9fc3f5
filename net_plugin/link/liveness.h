/* SPDX-License-Identifier: Apache-2.0 */
/* liveness: is the peer still alive, and which lanes are stalled although it is?
 * Owns: only its own struct.  Threads: the link's.
 * Blocks: never.  Fails: cannot.
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
 * (liveness_resumed). An acknowledgement that such a pause delayed is no sample of a lane's rate
 * (liveness_has_paused). */
#ifndef NET_PLUGIN_LINK_LIVENESS_H
#define NET_PLUGIN_LINK_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link_lane.h"

struct liveness {
  uint64_t timeout_ns, stopped_timeout_ns, interval_ns, doubt_ns;
  uint64_t spoke_ns;    /* the last frame on any lane */
  uint64_t heard_ns;    /* the last that was no PING */
  uint64_t waiting_ns;  /* when the user began to wait */
  uint64_t answered_ns; /* the last answer of the peer's host; 0: none is known of */
  uint64_t revived_ns;  /* when a gap ended */
  uint64_t rose_ns;     /* when a gap ended that is longer than the time between PINGs */
  uint64_t quiet_ns;    /* the beginning of the silence in which the user's PINGs were sent */
  uint64_t asked_ns;    /* the last of them */
  unsigned asks;        /* how often */
  struct link_lane *lanes;
};

/* lanes: zeroed. Timeouts: at most LINK_NO_DEADLINE / 2. stopped_timeout_ns: less than the timeout
 * counts as the timeout. */
void liveness_init(struct liveness *liveness, struct link_lane *lanes, uint64_t timeout_ns,
                   uint64_t stopped_timeout_ns, uint64_t now_ns);

/* A PING came. */
static inline void liveness_spoke(struct liveness *liveness, unsigned lane, uint64_t now_ns) {
  uint64_t gap_ns = now_ns - liveness->spoke_ns;
  if (gap_ns > LIVENESS_GAP_NS) {
    liveness->revived_ns = now_ns;
    liveness->rose_ns = gap_ns > 2 * liveness->interval_ns ? now_ns : liveness->rose_ns;
  }
  liveness->spoke_ns = liveness->lanes[lane].spoke_ns = now_ns;
}

/* Anything else came. */
static inline void liveness_heard(struct liveness *liveness, unsigned lane, uint64_t now_ns) {
  liveness_spoke(liveness, lane, now_ns);
  liveness->heard_ns = liveness->lanes[lane].heard_ns = now_ns;
}

/* Bytes of the lane were acknowledged, or it got its first ones. */
static inline void liveness_moved(struct liveness *liveness, unsigned lane, uint64_t now_ns) {
  liveness->lanes[lane].moved_ns = now_ns;
}

/* A PING goes out on it. */
static inline void liveness_asked(struct liveness *liveness, unsigned lane, uint64_t now_ns) {
  struct link_lane *asked = &liveness->lanes[lane];
  asked->asked_ns = asked->asked_ns > asked->heard_ns ? asked->asked_ns : now_ns;
}

/* A frame goes out on it without which the peer may not go on, and to which it need not answer. */
static inline void liveness_told(struct liveness *liveness, unsigned lane, uint64_t now_ns) {
  struct link_lane *told = &liveness->lanes[lane];
  told->told_ns = told->told_ns > told->heard_ns ? told->told_ns : now_ns;
}

/* Nothing was heard on the lane since it carried such a frame. */
static inline bool liveness_is_doubtful(const struct liveness *liveness, unsigned lane) {
  return liveness->lanes[lane].told_ns > liveness->lanes[lane].heard_ns;
}

static inline bool liveness_owes_answer(const struct liveness *liveness, unsigned lane) {
  return liveness->lanes[lane].asked_ns > liveness->lanes[lane].heard_ns;
}

/* The peer's host has answered, then or later. */
static inline void liveness_answered(struct liveness *liveness, uint64_t when_ns) {
  liveness->answered_ns = when_ns > liveness->answered_ns ? when_ns : liveness->answered_ns;
}

/* The user begins to wait. */
static inline void liveness_waits(struct liveness *liveness, uint64_t now_ns) {
  liveness->waiting_ns = now_ns;
}

/* This process did not run in the last gap_ns. The peer has at least half of its time from now on:
 * when in its last interval the process was stopped is not known. */
void liveness_resumed(struct liveness *liveness, uint64_t gap_ns, uint64_t now_ns);
/* Lanes of `up` that were heard lately get their whole time again. */
void liveness_pardon(struct liveness *liveness, uint64_t up, uint64_t now_ns);

/* ---- the peer; only while the user waits and a lane is up ---- */

uint64_t liveness_silence_ns(const struct liveness *liveness, uint64_t now_ns);
/* When the peer answered last, or the user began to wait for it. */
uint64_t liveness_quiet_since_ns(const struct liveness *liveness);
/* When PINGs are due or the peer counts as silent. */
uint64_t liveness_next_ns(const struct liveness *liveness);
/* The lanes of `up` that shall be asked now. */
uint64_t liveness_ask(struct liveness *liveness, uint64_t up, unsigned heard, uint64_t now_ns);
/* Silent for so long that it matters whether its host answers, though it was asked. */
bool liveness_is_in_doubt(const struct liveness *liveness, uint64_t now_ns);
/* Of a peer in doubt: its host has answered the last PING, or the one before. */
bool liveness_is_host_there(const struct liveness *liveness, uint64_t now_ns);
/* Of a peer in doubt: it is to be declared dead. */
bool liveness_is_dead(const struct liveness *liveness, uint64_t now_ns);

/* ---- lanes; each of them is up and has bytes in flight, or an unanswered PING ---- */

/* When the lane's clock began to run. is_alone: no other lane is up. */
uint64_t liveness_start_ns(const struct liveness *liveness, unsigned lane, bool has_bytes,
                           bool is_alone);
/* Its bytes have been acknowledged: did the clock begin anew meanwhile, after a pause? Before
 * liveness_moved. */
static inline bool liveness_has_paused(const struct liveness *liveness, unsigned lane,
                                       bool is_alone) {
  return liveness_start_ns(liveness, lane, true, is_alone) > liveness->lanes[lane].moved_ns;
}
/* How long a lane may take for its bytes, or for an answer (0 bytes). is_known: its rate is, or
 * nothing is in the way of the answer. A lane that is alone gets more. */
uint64_t liveness_limit_ns(const struct liveness *liveness, uint64_t bytes, uint32_t ps_per_byte,
                           bool is_known, bool is_alone);

#endif
