/* SPDX-License-Identifier: Apache-2.0 */
/* link_lane: all that a link knows of one lane, but for its state, of which struct link has masks:
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
 *               peer. The sender opens the lanes with the lowest numbers, as many as lanes_want
 *               says.
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
 *  3. Only the sender has lanes CONNECTING.
 *
 * Owns: only its own struct, in memory of the link.  Threads: the link's.
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LINK_LINK_LANE_H
#define NET_PLUGIN_LINK_LINK_LANE_H

#include "net_plugin/link/flight.h"
#include "net_plugin/link/link.h"

/* Where the payload of the frame that is arriving on a lane goes. */
enum arrival {
  ARRIVAL_NONE,    /* no frame is arriving */
  ARRIVAL_CONTROL, /* the lane's control buffer; every frame that is not DATA */
  ARRIVAL_DIRECT,  /* its place in the user's buffer, or in a bounce buffer */
  ARRIVAL_STAGED,  /* memory of the lane's: it is LL, compressed, or a second copy of a chunk that
                      arrives, with a checksum */
  ARRIVAL_PLACED,  /* the user's buffer, and the bytes are there already */
  ARRIVAL_NOWHERE, /* the user detached: read and forget */
  ARRIVAL_AGAIN,   /* the chunk has landed already: read, forget, acknowledge once more */
};

/* It is a chunk that has not landed. */
static inline bool arrival_is_for_message(enum arrival arrival) {
  return arrival >= ARRIVAL_DIRECT && arrival <= ARRIVAL_PLACED;
}

/* What is known of the last packets of a lane, see link_tail.c. */
struct link_tail {
  uint64_t written_ns;  /* the last frame that is not about the lane itself */
  uint64_t looked_ns;   /* the last time that its transport was asked; 0: not since it was quiet */
  uint64_t look_ns;     /* the next time, if nothing moves */
  uint64_t acked_bytes; /* what the transport said */
  uint64_t moved_ns;    /* when it last said another number */
  uint64_t retransmits; /* likewise, when the lane moved last */
  unsigned looks;       /* in a row that found the same: is_lost, or moving */
  unsigned
      in_vain; /* PINGs that brought nothing, in LINK_TAIL_PARTS; kept while nothing is missing */
  bool has_pinged;  /* since something was written after nothing was missing */
  bool is_lost;     /* nothing had moved then */
  bool is_acked;    /* the peer's kernel had all of it then */
  unsigned pongs;   /* for want of the rest of a frame, since a part of it arrived */
  uint64_t pong_ns; /* the next one */
};

struct link_lane {
  /* its state */
  uint32_t epoch;        /* the current one, or the one ordered, or the last one */
  uint32_t fenced_epoch; /* this one and older ones are over */
  uint32_t close_epoch;  /* for the CLOSE order */
  enum link_close_reason close_reason;
  uint32_t failures; /* in a row, without an acknowledgement between them */
  uint32_t stalls;   /* of these: it stalled */
  uint64_t retry_ns; /* LOST, sender: when to reconnect */

  /* liveness */
  uint64_t spoke_ns; /* the last frame, or the handshake */
  uint64_t heard_ns; /* the last that was no PING */
  uint64_t moved_ns; /* the last acknowledgement, or the first bytes */
  uint64_t asked_ns; /* the first PING after heard_ns, if it is later */
  uint64_t told_ns;  /* likewise the first frame on which the peer's next one may depend */

  /* the frame that is arriving */
  enum arrival arrival;
  struct wire_header header;
  uint8_t *buffer;

  uint8_t *control;    /* payload of a WINDOW, being written (receiver) or arriving (sender) */
  uint64_t pong_token; /* of the last PING, valid while the bit in link->pong is set */
  struct link_lane_counts counts;
  uint64_t up_ns; /* when this epoch came up */
  struct link_tail tail;

  /* receiver */
  uint64_t arrived_ns;  /* when its last DATA frame was complete; 0: none was in this epoch */
  uint8_t *staging;     /* touched only by polled frames */
  uint8_t *destination; /* ARRIVAL_STAGED: where the bytes go when all of them are there;
                           ARRIVAL_PLACED: where they are */

  /* sender */
  struct policy_lane policy;
  unsigned in_flight;   /* chunks that it carries; an overtaken one until it is written */
  uint64_t number;      /* of the DATA frame that is being written, or was last */
  struct chunk chunk;   /* of this number */
  bool is_writing_data; /* it is being written */
  bool is_copied;       /* and nothing of it is read from its message */
  bool is_raw;          /* no chunk is compressed on it any more */
  bool is_overtaken;    /* the peer has it, and it is not written yet: another lane brought it,
                           or the owner is late with its report */
};

/* It reads a payload that is in its message, which must not change. */
static inline bool link_lane_reads(const struct link_lane *lane) {
  return lane->is_writing_data && !lane->is_copied;
}

#endif
