/* SPDX-License-Identifier: Apache-2.0 */
/* credit: what the sender may send, and when the receiver sends a WINDOW frame.
 * Owns: only its own structs.  Threads: the link's.
 * Blocks: never.  Fails: cannot.
 *
 * The receiver grants receives: a granted message has a user buffer. The sender may send
 * eager_slots eager messages without a grant; the receiver keeps a bounce buffer for each. Eager
 * messages have at most eager_bytes, and could not be placed by an RDMA lane. Nothing else is sent
 * without a grant, so no lane is blocked by a message that has no destination.
 *
 * A message that an RDMA lane could place waits for its grant: a REQUEST costs one round trip, and
 * only until the receiver grants by itself, but a stream through a device's slots blocks the sender
 * for longer.
 *
 * A WINDOW frame costs a system call on both sides, which for small messages is most of their cost.
 * So WINDOW frames are delayed and coalesced. One is sent at once when
 *  - a message has landed that its sender did not copy: its user waits for the acknowledgement;
 *  - the sender asked for credit (REQUEST), and there is some;
 *  - half of the credit for bulk traffic is used: messages that were not copied, or that a device
 *    could have placed had the sender known the remote buffer;
 *  - small messages have used half of the eager slots;
 *  - many bytes are not acknowledged, or eager frames: see the CREDIT_ values of limits.h;
 *  - CREDIT_OPENING_NS after a receive of a large message was granted while no other one waited: at
 *    the beginning of a collective. So the sender need not ask, which costs a round trip, on which
 *    both frames wait behind data in the NICs' queues.
 *
 * Otherwise it is sent with the next one, at the latest after CREDIT_DELAY_NS, or on an RDMA lane
 * CREDIT_RDMA_DELAY_NS: a WINDOW costs as much there as a message, and nobody waits for the
 * acknowledgement of a copy. */
#ifndef NET_PLUGIN_LINK_CREDIT_H
#define NET_PLUGIN_LINK_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

/* ---- sender ---- */

struct credit_taken {
  uint64_t granted;   /* by the peer */
  uint64_t requested; /* messages for which a REQUEST was written: all below. 0: ask again */
  unsigned eager_slots;
};

static inline bool credit_allows(const struct credit_taken *credit, uint64_t message,
                                 bool is_eager) {
  return message < credit->granted || (is_eager && message < credit->granted + credit->eager_slots);
}

/* The message cannot be sent. Must a REQUEST be written for it? Eager ones need none: the receiver
 * sends a WINDOW anyway before the eager slots are used up. */
bool credit_must_request(const struct credit_taken *credit, uint64_t message, bool is_eager);

/* A REQUEST for this message is being written. */
static inline void credit_request(struct credit_taken *credit, uint64_t message) {
  credit->requested = message + 1;
}

/* ---- receiver ---- */

struct credit_given {
  unsigned eager_slots;
  uint64_t granted;    /* receives, so far */
  uint64_t advertised; /* those granted by the last WINDOW */
  uint64_t wanted;     /* the sender asked for grants of all messages below */
  uint32_t frames;     /* arrived since the last WINDOW */
  uint64_t bytes;
  bool is_bulk;         /* the last message that landed was one for which a grant is of use */
  bool is_due;          /* a WINDOW must be written now */
  uint64_t deadline_ns; /* or then; LINK_NO_DEADLINE if nothing is pending */
  uint64_t opening_ns;  /* or then, if there is anything to grant; likewise */
};

void credit_init(struct credit_given *credit, unsigned eager_slots);

/* A receive was granted, or a REQUEST came. granted: all that is; landed: messages that are. */
void credit_granted(struct credit_given *credit, uint64_t granted, uint64_t landed);
void credit_requested(struct credit_given *credit, uint64_t message, uint64_t granted);

/* A receive of a message that may be too large to be eager is being granted, while no other one
 * waits. */
static inline void credit_opening(struct credit_given *credit, uint64_t now_ns) {
  credit->opening_ns = now_ns + CREDIT_OPENING_NS;
}

/* A DATA frame arrived. wants_ack: the sender's user waits. has_landed: it was the last one of its
 * message. latest_ns: it is acknowledged by then. */
void credit_frame_arrived(struct credit_given *credit, uint32_t bytes, bool wants_ack,
                          bool has_landed, uint64_t latest_ns);

static inline uint64_t credit_next_ns(const struct credit_given *credit) {
  return credit->deadline_ns < credit->opening_ns ? credit->deadline_ns : credit->opening_ns;
}
void credit_time_passed(struct credit_given *credit, uint64_t now_ns);

/* There is nothing more to advertise. */
static inline void credit_end(struct credit_given *credit) {
  credit->is_due = false;
  credit->deadline_ns = credit->opening_ns = LINK_NO_DEADLINE;
}

/* A WINDOW with all grants and acknowledgements is being written. */
void credit_advertised(struct credit_given *credit, uint64_t granted);

#endif
