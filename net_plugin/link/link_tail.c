/* SPDX-License-Identifier: Apache-2.0 */
/* link_tail: what to do about a lane whose last packets were lost.
 *
 * TCP sends again at once what it misses when something behind it arrives. Behind the last packets
 * of a message nothing comes, so that these wait for the retransmission timeout, 200 ms and more. A
 * PING behind them is enough: the peer's kernel acknowledges it selectively, and what is missing is
 * sent again within a round trip (RFC 8985). The same holds for a WINDOW on the way back.
 *
 * Lost is not slow: the kernel says whether the lane moves. It is asked only about a lane on which
 * a frame was written and nothing was heard since for longer than usual; and a PING goes out when
 * it has acknowledged nothing from one look to the next, though it has something to acknowledge.
 * Usual is what PINGs have taken until they were answered: where threads wait for a CPU, peers
 * answer, and kernels acknowledge, milliseconds later. */
#include "net_plugin/link/link_state.h"

/* Without an answer for so long a lane is asked. */
static uint64_t link_tail_patience_ns(const struct link *link) {
  return LINK_TAIL_ANSWERS * link->answer_ns;
}

void link_tail_written(struct link *link, unsigned lane, uint64_t now_ns) {
  link->tails |= lane_bit(lane) & ~link->rdma;
  link->lanes[lane].tail.written_ns = now_ns;
  link->lanes[lane].tail.is_acked = false;
  if (link->tail_ns == LINK_NO_DEADLINE && link->tails != 0) {
    link->tail_ns = now_ns + link_tail_patience_ns(link);
  }
}

/* A WINDOW says all that the ones before have said: what became of these is of no interest, unless
 * their lane was looked at, or a PING is on its way. */
void link_tails_outdated(struct link *link) {
  for (uint64_t lanes = link->tails & ~link->tails_due; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    const struct link_tail *tail = &link->lanes[lane].tail;
    if (tail->looked_ns < tail->written_ns && !liveness_owes_answer(link, lane)) {
      link->tails &= ~lane_bit(lane);
    }
  }
}

/* The median, so that what was lost does not count: it grows by as much as it shrinks. */
void link_tail_answered(struct link *link, unsigned lane, uint64_t now_ns) {
  if (!liveness_owes_answer(link, lane)) {
    return;
  }
  uint64_t step_ns = link->answer_ns / LINK_TAIL_ANSWER_PARTS;
  if (now_ns <= link->lanes[lane].asked_ns + link->answer_ns) {
    link->answer_ns -= step_ns;
  } else {
    link->answer_ns += step_ns;
  }
  if (link->answer_ns < LINK_TAIL_ANSWER_NS) {
    link->answer_ns = LINK_TAIL_ANSWER_NS;
  } else if (link->answer_ns > LINK_TAIL_ANSWER_MAX_NS) {
    link->answer_ns = LINK_TAIL_ANSWER_MAX_NS;
  }
}

void link_tail_dropped(struct link *link, unsigned lane) {
  link->tails &= ~lane_bit(lane);
  link->tails_due &= ~lane_bit(lane);
  struct link_tail *tail = &link->lanes[lane].tail;
  tail->in_vain -= tail->has_pinged || tail->in_vain == 0 ? 0 : 1;
  tail->written_ns = tail->looked_ns = tail->look_ns = 0;
  tail->looks = 0;
  tail->is_lost = tail->is_acked = tail->has_pinged = false;
  link_moves(link, lane);
}

/* The last time that the lane is known to have moved, or was given more. */
static uint64_t link_tail_since_ns(const struct link *link, unsigned lane) {
  const struct link_lane *written = &link->lanes[lane];
  uint64_t moved_ns = written->in_flight > 0 ? written->moved_ns : 0;
  return moved_ns > written->tail.written_ns ? moved_ns : written->tail.written_ns;
}

/* When the lane is to be looked at; LINK_NO_DEADLINE: nothing is missing. What was heard at the
 * time of the last write came before it, and says nothing about it. A WINDOW on another lane may
 * have acknowledged what this one carried. Nothing that a receiver hears
 * says that its WINDOW arrived: what follows may have been allowed by the one before. */
static uint64_t link_tail_due_ns(const struct link *link, unsigned lane) {
  const struct link_lane *written = &link->lanes[lane];
  const struct link_tail *tail = &written->tail;
  bool is_heard = tail->written_ns < written->heard_ns || tail->written_ns < written->moved_ns;
  if (link->config.role == LINK_SENDER && written->in_flight == 0 && is_heard &&
      !liveness_owes_answer(link, lane)) {
    return LINK_NO_DEADLINE;
  }
  uint64_t since_ns = link_tail_since_ns(link, lane);
  return since_ns < tail->looked_ns ? tail->look_ns : since_ns + link_tail_patience_ns(link);
}

void link_look_at_tails(struct link *link, uint64_t now_ns) {
  link->tail_ns = LINK_NO_DEADLINE;
  for (uint64_t lanes = link->tails; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t due_ns = link_tail_due_ns(link, lane);
    if (due_ns == LINK_NO_DEADLINE) {
      link_tail_dropped(link, lane);
    } else if (due_ns <= now_ns) {
      link->tails_due |= lane_bit(lane);
    } else {
      link->tail_ns = due_ns < link->tail_ns ? due_ns : link->tail_ns;
    }
  }
}

static unsigned link_tail_doublings(const struct link_tail *tail) {
  unsigned in_vain = tail->in_vain / LINK_TAIL_PARTS;
  unsigned learned = in_vain > LINK_TAIL_PINGS ? 2 * (in_vain - LINK_TAIL_PINGS) : 0;
  learned = learned < LINK_TAIL_LOST_DOUBLINGS ? learned : LINK_TAIL_LOST_DOUBLINGS;
  unsigned most = tail->is_lost ? 0 : LINK_TAIL_SLOW_DOUBLINGS;
  unsigned slow = tail->looks < most ? tail->looks : most;
  return learned > slow ? learned : slow;
}

/* The lane moves. If its kernel sent something again PINGs are of use. */
static void link_tail_moves(struct link_tail *tail, const struct policy_transport *transport,
                            uint64_t now_ns) {
  tail->in_vain >>= transport->retransmits != tail->retransmits ? 1 : 0;
  tail->retransmits = transport->retransmits;
  tail->acked_bytes = transport->acked_bytes;
  tail->moved_ns = now_ns;
  tail->has_pinged = false;
}

/* The last PING was in vain if nothing has moved since. One that a kernel answers at once, since it
 * delayed its acknowledgement, was not. */
static void link_tail_ping(struct link *link, unsigned lane) {
  struct link_tail *tail = &link->lanes[lane].tail;
  unsigned most = LINK_TAIL_PINGS_MOST * LINK_TAIL_PARTS;
  if (tail->has_pinged && tail->in_vain >= most) {
    return;
  }
  tail->in_vain += tail->has_pinged ? LINK_TAIL_PARTS : 0;
  tail->has_pinged = true;
  link->counts.tail_pings += (link->ping & lane_bit(lane)) == 0;
  link->ping |= lane_bit(lane);
}

bool link_tail_measured(struct link *link, unsigned lane, const struct policy_transport *transport,
                        uint64_t now_ns) {
  struct link_tail *tail = &link->lanes[lane].tail;
  bool has_moved = transport != NULL && transport->acked_bytes != tail->acked_bytes;
  if (has_moved) {
    link_tail_moves(tail, transport, now_ns);
    link_moves(link, lane);
  }
  if (transport == NULL || !transport->has_unacked) {
    link_tail_dropped(link, lane); /* until it is written again */
    tail->is_acked = transport != NULL;
    return false;
  }
  tail->is_acked = false;
  uint64_t pause_ns = LINK_TAIL_RTTS * transport->rtt_min_us * 1000ull;
  uint64_t patience_ns = link_tail_patience_ns(link);
  pause_ns = pause_ns > patience_ns ? pause_ns : patience_ns;
  bool is_second = link_tail_since_ns(link, lane) < tail->looked_ns;
  bool is_lost = is_second && !has_moved;
  tail->looks = is_second && is_lost == tail->is_lost ? tail->looks + 1 : 0;
  tail->is_lost = is_lost;
  if (is_lost) {
    link_tail_ping(link, lane);
  }
  pause_ns <<= link_tail_doublings(tail);
  tail->looked_ns = now_ns;
  tail->look_ns = now_ns + pause_ns;
  link->tails_due &= ~lane_bit(lane);
  link->tail_ns = tail->look_ns < link->tail_ns ? tail->look_ns : link->tail_ns;
  bool does_read = link->lanes[lane].spoke_ns > link_tail_since_ns(link, lane);
  bool is_small = link->lanes[lane].policy.in_flight_bytes <= LINK_TAIL_STILL_BYTES;
  bool is_long = tail->looks >= LINK_TAIL_STILL_LOOKS && (is_small || does_read);
  return is_lost && (transport->is_repairing || is_long);
}

bool link_measure_tails(struct link *link, uint64_t lanes) {
  bool is_acked = true;
  for (uint64_t left = lanes; left != 0; left &= left - 1) {
    is_acked &= link->lanes[__builtin_ctzll(left)].tail.is_acked;
  }
  link->tails |= lanes & ~link->rdma;
  link->tails_due |= lanes & ~link->rdma;
  return is_acked;
}

/* ---- a frame of which a part is missing ---- */

/* The kernel acknowledged what arrived, and that may be lost as well. The sender's kernel then asks
 * with one packet, whose acknowledgement ours may delay by 40 ms; a PING of the sender's waits
 * behind what its congestion window holds back. Whatever is sent from here has the acknowledgement
 * with it: a PONG that answers no PING. */
void link_partial_arrived(struct link *link, unsigned lane, uint64_t now_ns) {
  uint64_t bit = lane_bit(lane) & ~link->rdma;
  if (bit == 0) {
    return;
  }
  struct link_tail *tail = &link->lanes[lane].tail;
  link->partial |= bit;
  tail->pongs = 0;
  tail->pong_ns = now_ns + LINK_PARTIAL_NS;
  link->partial_ns = tail->pong_ns < link->partial_ns ? tail->pong_ns : link->partial_ns;
}

void link_partial_ended(struct link *link, unsigned lane) {
  link->partial &= ~lane_bit(lane);
  link->partial_ns = link->partial == 0 ? LINK_NO_DEADLINE : link->partial_ns;
}

void link_look_at_partial(struct link *link, uint64_t now_ns) {
  link->partial_ns = LINK_NO_DEADLINE;
  for (uint64_t lanes = link->partial; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    struct link_tail *tail = &link->lanes[lane].tail;
    if (tail->pong_ns <= now_ns) {
      bool is_answer = (link->pong & lane_bit(lane)) != 0; /* it does as well */
      link->pong |= lane_bit(lane);
      link->lanes[lane].pong_token = is_answer ? link->lanes[lane].pong_token : LINK_UNASKED;
      tail->pongs++;
      tail->pong_ns = tail->pongs < LINK_PARTIAL_PONGS ? now_ns + (LINK_PARTIAL_NS << tail->pongs)
                                                       : LINK_NO_DEADLINE;
    }
    link->partial_ns = tail->pong_ns < link->partial_ns ? tail->pong_ns : link->partial_ns;
  }
}
