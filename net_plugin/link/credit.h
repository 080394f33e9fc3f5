/* SPDX-License-Identifier: Apache-2.0 */
/* credit: what the sender may send, and when the receiver speaks.
 * Owns: only its own structs.  Threads: the link's.
 * Blocks: never.  Fails: cannot.
 *
 * The receiver grants receives; a granted message has a buffer of the user waiting for it. Beyond
 * that the sender may run ahead by eager_slots eager messages, for which the receiver keeps bounce
 * buffers: those of at most eager_bytes, except what a device could write where it belongs. To ask
 * for the place takes one round trip, and only while the receiver does not tell by itself; a stream
 * through a device's slots holds up its sender for longer. Without a grant nothing else is sent, so
 * no lane is ever blocked by a message that has no place to go.
 *
 * A WINDOW frame costs a system call on both sides, which for small messages is most of their cost.
 * So the receiver is silent unless somebody waits:
 *  - a message has landed that its sender did not copy: its user waits for the acknowledgement;
 *  - the sender asked for credit (REQUEST), and there is some;
 *  - bulk traffic is about to run out of credit, half of what it had is used: messages that were
 * not copied, or that a device could have written where they belong had the sender known the place;
 *  - small messages have used half of the eager slots;
 *  - frames pile up in the sender's journals: see the CREDIT_ limits below.
 * Whatever else is to be told rides along, at the latest after CREDIT_DELAY_NS or, on a direct
 * lane, CREDIT_RDMA_DELAY_NS: a WINDOW costs as much there as a message, and nobody waits for
 * the acknowledgement of a copy but the journal, whose limits are below. */
#ifndef NET_PLUGIN_LINK_CREDIT_H
#define NET_PLUGIN_LINK_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

#define CREDIT_DELAY_NS 1000000ull /* longest time a frame stays unacknowledged */
#define CREDIT_RDMA_DELAY_NS 50000000ull
#define CREDIT_FRAMES (LINK_WINDOW / 2) /* eager frames that may stay unacknowledged */
#define CREDIT_LANE_FRAMES                                                                         \
  (LINK_JOURNAL / 2)              /* frames of one lane: its journal must not limit it */
#define CREDIT_BYTES (512u << 10) /* bytes of all lanes: what keeps drain rates known */

/* ---- sender ---- */

struct credit_taken {
  uint64_t granted;   /* by the peer */
  uint64_t requested; /* messages for which a REQUEST was written: all below */
  unsigned eager_slots;
};

static inline bool credit_allows(const struct credit_taken *credit, uint64_t message,
                                 bool is_eager) {
  return message < credit->granted || (is_eager && message < credit->granted + credit->eager_slots);
}

/* The message cannot be sent. Must a REQUEST be written for it? Eager ones need none: the receiver
 * speaks anyway before the eager slots are used up. */
bool credit_must_request(const struct credit_taken *credit, uint64_t message, bool is_eager);

/* A REQUEST for this message is being written. */
static inline void credit_request(struct credit_taken *credit, uint64_t message) {
  credit->requested = message + 1;
}

/* The REQUEST may have been lost with its lane: ask again. */
void credit_forget_request(struct credit_taken *credit);

/* ---- receiver ---- */

struct credit_given {
  unsigned eager_slots;
  uint64_t told;   /* receives granted by the last WINDOW */
  uint64_t wanted; /* the sender asked for grants of all messages below */
  uint32_t frames; /* arrived since the last WINDOW */
  uint64_t bytes;
  bool is_bulk;         /* the last message was one for which a grant is of use */
  bool is_due;          /* a WINDOW must be written now */
  uint64_t deadline_ns; /* or then; LINK_NO_DEADLINE if nothing is pending */
};

void credit_init(struct credit_given *credit, unsigned eager_slots);

/* A receive was granted, or a REQUEST came. granted: all that is; landed: messages that are. */
void credit_granted(struct credit_given *credit, uint64_t granted, uint64_t landed);
void credit_requested(struct credit_given *credit, uint64_t message, uint64_t granted);

/* A message landed. is_bulk: the next one like it should find a grant. */
void credit_landed(struct credit_given *credit, bool is_bulk);

/* A DATA frame arrived. lane_frames: unacknowledged ones of its lane. wants_ack: the sender's user
 * waits. has_landed: it was the last one of its message. latest_ns: it is acknowledged by then. */
void credit_frame_arrived(struct credit_given *credit, uint32_t bytes, uint64_t lane_frames,
                          bool wants_ack, bool has_landed, uint64_t latest_ns);

void credit_time_passed(struct credit_given *credit, uint64_t now_ns);

/* A WINDOW with all there is to tell is being written. */
void credit_told(struct credit_given *credit, uint64_t granted);

#endif
