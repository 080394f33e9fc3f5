/* SPDX-License-Identifier: Apache-2.0 */
/* link_lane: all that a link knows of one lane. Of which of them are up, lost or connecting
 * `struct failover` has masks.
 * Owns: only its own struct, in memory of the link.  Threads: the link's.
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LINK_LINK_LANE_H
#define NET_PLUGIN_LINK_LINK_LANE_H

#include "net_plugin/link/journal.h"
#include "net_plugin/link/link.h"

/* Where the payload of the frame that is arriving on a lane goes. */
enum arrival {
  ARRIVAL_NONE,    /* no frame is arriving */
  ARRIVAL_CONTROL, /* the lane's control buffer; every frame that is not DATA */
  ARRIVAL_USER,    /* the user's buffer */
  ARRIVAL_STAGED,  /* the lane's staging buffer, for the user's: the frame is LL */
  ARRIVAL_BOUNCED, /* a bounce buffer */
  ARRIVAL_PLACED,  /* the user's buffer, and the bytes are there already */
  ARRIVAL_NOWHERE, /* the user detached: read and forget */
  ARRIVAL_AGAIN,   /* it has landed already, from another lane: read, forget, count */
};

/* It counts in the message that the user posted a receive for. */
static inline bool arrival_is_for_user(enum arrival arrival) {
  return arrival == ARRIVAL_USER || arrival == ARRIVAL_STAGED || arrival == ARRIVAL_PLACED;
}

static inline bool arrival_is_for_message(enum arrival arrival) {
  return arrival_is_for_user(arrival) || arrival == ARRIVAL_BOUNCED;
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
  /* failover */
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
  uint64_t base;       /* DATA frames that counted before this epoch */
  uint64_t pong_token; /* of the last PING, valid while the bit in link->pong is set */
  struct link_lane_counts counts;
  uint64_t up_ns; /* when this epoch came up */
  struct link_tail tail;

  /* receiver */
  uint64_t received;     /* DATA frames that counted, over all epochs */
  uint64_t acknowledged; /* of these, by a WINDOW */
  uint64_t arrived_ns;   /* when the last of them came */
  uint8_t *staging;      /* touched only by polled frames */
  unsigned shares;       /* 1 + the lane on which the same chunk arrives; 0: none */
  uint64_t elsewhere;    /* frames to come whose chunks landed from other lanes: 1 << number % 64 */
  uint32_t elsewhere_epoch; /* of which epoch, modulo WIRE_ORIGIN_EPOCHS */
  uint32_t epoch_before;    /* the last one that was up before this one */
  uint8_t *destination; /* ARRIVAL_STAGED, and of a compressed frame: where the bytes go when all of
                           them are there; ARRIVAL_PLACED: where they are */

  /* sender */
  uint32_t sent_epoch; /* the one whose frames are in the journal */
  uint64_t claimed;    /* the peer acknowledged so many, perhaps before link_frame_taken */
  uint64_t repeated;   /* frames below this number are not repeated any more */
  struct journal journal;

  /* both: a compressed chunk, see link_coding_memory_fn; NULL: none needed it */
  uint8_t *coding;
  size_t coding_bytes;
};

#endif
