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
 * it has acknowledged nothing from one look to the next, though it has something to acknowledge. */
#include "common/ablation.h"
#include "net_plugin/link/link_state.h"

/* Since a lane was written, or moved; and between two looks. With 1 % of the packets lost a half
 * round trip of 8 B takes 18 us in the mean, and 1470 without any of this. Without loss one of 8 B
 * takes 4.2 us and one of 64 KiB 20.5 with and without it (medians of 4 rounds). A kernel may delay
 * its acknowledgement for longer: such a PING costs little, as it follows a pause. */
#define LINK_TAIL_NS 300000ull
/* Between two looks, in round trip times of the lane: the least so far, since the smoothed one of a
 * lane with losses is milliseconds where the path takes microseconds. */
#define LINK_TAIL_RTTS 4u
/* PINGs in vain that follow at the same pause: they may have been lost themselves. Not measured by
 * itself. */
#define LINK_TAIL_PINGS 3u
/* Then each pause is twice as long as the one before, so many times: of a lane that moves, whose
 * messages take long (up to 2.4 ms), and of one that gets PINGs in vain, whose path may be gone (38
 * ms). It gets no more PINGs then. Not measured by themselves. */
#define LINK_TAIL_SLOW_DOUBLINGS 3u
#define LINK_TAIL_LOST_DOUBLINGS 7u
/* A lane stands still when the kernel knows that packets are missing; or, as all of them may be and
 * the PING with them, when it has not moved for so many more looks: about 2 ms. Only with no more
 * bytes in flight than a packet may have, since of several one arrives, and tells of the others: a
 * lane that has more is held up by a peer that does not read. On 2 CPUs with 4 pairs of processes
 * 64 KiB sent 3 % twice. Such a peer may also delay its acknowledgements for 40 ms: what is small
 * is sent twice then. */
#define LINK_TAIL_STILL_LOOKS 4u
#define LINK_TAIL_STILL_BYTES (8u << 10)

void link_tail_written(struct link *link, unsigned lane, uint64_t now_ns) {
  if (ablation_has(link->config.ablated, ABLATION_TAIL)) {
    return;
  }
  link->tails |= lane_bit(lane) & ~link->rdma;
  link->lanes[lane].tail.written_ns = now_ns;
  if (link->tail_ns == LINK_NO_DEADLINE && link->tails != 0) {
    link->tail_ns = now_ns + LINK_TAIL_NS;
  }
}

void link_tail_dropped(struct link *link, unsigned lane) {
  link->tails &= ~lane_bit(lane);
  link->tails_due &= ~lane_bit(lane);
  link->lanes[lane].tail = (struct link_tail){ 0 };
  link_moves(link, lane);
}

/* The last time that the lane is known to have moved, or was given more. */
static uint64_t link_tail_since_ns(const struct link *link, unsigned lane) {
  const struct link_lane *written = &link->lanes[lane];
  uint64_t moved_ns = journal_count(&written->journal) > 0 ? written->moved_ns : 0;
  return moved_ns > written->tail.written_ns ? moved_ns : written->tail.written_ns;
}

/* When the lane is to be looked at; LINK_NO_DEADLINE: nothing is missing. What was heard at the
 * time of the last write came before it, and says nothing about it. Nothing that a receiver hears
 * says that its WINDOW arrived: what follows may have been allowed by the one before. */
static uint64_t link_tail_due_ns(const struct link *link, unsigned lane) {
  const struct link_tail *tail = &link->lanes[lane].tail;
  if (link->config.role == LINK_SENDER && journal_count(&link->lanes[lane].journal) == 0 &&
      tail->written_ns < link->lanes[lane].heard_ns &&
      !liveness_owes_answer(&link->liveness, lane)) {
    return LINK_NO_DEADLINE;
  }
  uint64_t since_ns = link_tail_since_ns(link, lane);
  return since_ns < tail->looked_ns ? tail->look_ns : since_ns + LINK_TAIL_NS;
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

/* A lane that moves with nothing sent again has lost nothing: it is slower than the PINGs thought,
 * and what was acknowledged may be no more than these. The next ones wait as long as the last had
 * to, and there is always one more. In a simulation the last lane had less than 1 Mb/s, and was
 * given 1650 PINGs a second. */
static void link_tail_moves(struct link_tail *tail, const struct policy_transport *transport) {
  unsigned most = LINK_TAIL_PINGS + LINK_TAIL_LOST_DOUBLINGS;
  if (transport->retransmits != tail->retransmits) {
    tail->pings = 0;
  } else if (tail->pings > most) {
    tail->pings = most;
  }
  tail->retransmits = transport->retransmits;
}

void link_tail_measured(struct link *link, unsigned lane, const struct policy_transport *transport,
                        uint64_t now_ns) {
  struct link_tail *tail = &link->lanes[lane].tail;
  if (transport == NULL || !transport->has_unacked) {
    link_tail_dropped(link, lane); /* until it is written again */
    return;
  }
  uint64_t pause_ns = LINK_TAIL_RTTS * transport->rtt_min_us * 1000ull;
  pause_ns = pause_ns > LINK_TAIL_NS ? pause_ns : LINK_TAIL_NS;
  bool is_second = link_tail_since_ns(link, lane) < tail->looked_ns;
  bool has_moved = transport->acked_bytes != tail->acked_bytes;
  bool is_lost = is_second && !has_moved;
  tail->looks = is_second && is_lost == tail->is_lost ? tail->looks + 1 : 0;
  tail->is_lost = is_lost;
  if (is_lost) {
    if (tail->pings <= LINK_TAIL_PINGS + LINK_TAIL_LOST_DOUBLINGS) {
      tail->pings++;
      link->tail_pings += (link->ping & lane_bit(lane)) == 0;
      link->ping |= lane_bit(lane);
    }
    if (transport->is_repairing || (tail->looks >= LINK_TAIL_STILL_LOOKS &&
                                    link->lanes[lane].journal.bytes <= LINK_TAIL_STILL_BYTES)) {
      link_stands_still(link, lane);
    }
    unsigned in_vain = tail->pings - 1;
    pause_ns <<= in_vain > LINK_TAIL_PINGS ? in_vain - LINK_TAIL_PINGS : 0;
  } else {
    pause_ns <<= tail->looks < LINK_TAIL_SLOW_DOUBLINGS ? tail->looks : LINK_TAIL_SLOW_DOUBLINGS;
  }
  if (has_moved) {
    link_tail_moves(tail, transport);
    link_moves(link, lane);
  }
  tail->acked_bytes = transport->acked_bytes;
  tail->looked_ns = now_ns;
  tail->look_ns = now_ns + pause_ns;
  link->tails_due &= ~lane_bit(lane);
  link->tail_ns = tail->look_ns < link->tail_ns ? tail->look_ns : link->tail_ns;
}
