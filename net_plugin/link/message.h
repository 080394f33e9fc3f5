/* SPDX-License-Identifier: Apache-2.0 */
/* message: the messages in flight of one connection, and their completion in order.
 * Owns: its structs, and the eager buffers given at init.  Threads: the link's.
 * Blocks: never.  Fails: as stated; nothing changes then.
 *
 * Both sides number messages from 0 as they are posted and keep the last LINK_WINDOW of them.
 *
 *   sender      taken <= completed <= posted      reported to the user, complete, posted
 *               retired <= cutting <= posted      acknowledged, cut into chunks, posted
 *   receiver    taken <= completed <= posted      reported to the user, landed, posted
 *               completed <= granted <= posted    what the sender may send
 *
 * A message of at most eager_bytes is copied when it is posted, if there is room for the copy, and
 * complete for the user as soon as all of it was written once. Not at once: who waits for a send
 * moves its bytes on, and a sender cannot run ahead of what the paths take. On the receiver a
 * message of that size may arrive before its receive: it lands in a bounce buffer, slot (number %
 * eager_slots), and is copied out when it is whole and the receive is posted. */
#ifndef NET_PLUGIN_LINK_MESSAGE_H
#define NET_PLUGIN_LINK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/link/flight.h"
#include "net_plugin/link/link.h"

/* ---- sender ---- */

/* A kernel reads the message while it arrives: see ll_detect. */
enum ll_form {
  LL_NONE,
  LL_WORDS, /* LL: 8 bytes that NICs, which write aligned words whole, may write in any order */
  LL_LINES, /* LL128, or both: nothing promises that a NIC writes a line's end last */
};

/* NCCL's LL and LL128 kernels do not wait for the proxy to report that a message is complete: they
 * poll flags inside it. LL takes 8 bytes once the upper 4 are the step's number, LL128 takes a line
 * of 128 bytes once the last 8 are (NVIDIA/nccl src/device/prims_ll.h, prims_ll128.h at v2.29.7-1).
 * So their bytes must become visible in order, and none before its checksum is known to be right.
 * recv() promises no order: a kernel that copies by string instructions, whose stores are not
 * ordered among themselves, shows a flag before the data in front of it.
 *
 * No call gives the protocol of a message, but the message shows it: every line that a proxy sends
 * carries the flag, the same one in the whole message and never 0. Other messages seldom have that
 * form; one that does is only received with one copy more. */
enum ll_form ll_detect(const void *data, size_t bytes);

struct outgoing {
  const uint8_t *data; /* the user's, or our copy */
  uint64_t bytes;
  uint64_t cut;      /* bytes that were given to chunks */
  uint64_t written;  /* bytes of chunks that were written, repeated ones counted again */
  uint64_t acked;    /* bytes that were acknowledged */
  uint64_t copy_end; /* is_copied: the end of its place among the copies */
  uint32_t chunks;   /* in flight */
  bool is_copied;
  enum ll_form ll;
  const void *memory; /* the owner's registration of the user's data; NULL for our copy */
  uint64_t posted_ns;
};

struct outgoing_ring {
  uint64_t posted, cutting, retired, completed, taken;
  /* Copies lie one behind the other in a ring; places are counted over all its rounds. */
  uint8_t *copies;
  uint64_t copies_bytes, copies_begin, copies_end;
  uint32_t eager_bytes;
  struct outgoing slots[LINK_WINDOW];
};

void outgoing_init(struct outgoing_ring *ring, uint32_t eager_bytes, uint8_t *copies,
                   size_t copies_bytes);

/* 0, or -EAGAIN: the window is full. */
int outgoing_post(struct outgoing_ring *ring, const void *data, uint64_t bytes, bool may_copy);

/* The oldest message with bytes that no chunk covers; NULL if there is none. */
static inline const struct outgoing *outgoing_cutting(const struct outgoing_ring *ring) {
  return ring->cutting < ring->posted ? &ring->slots[ring->cutting % LINK_WINDOW] : NULL;
}

/* Cuts `length` bytes of that message (its remaining bytes at most; 0 only if it has none). */
struct chunk outgoing_cut(struct outgoing_ring *ring, uint32_t length);

/* Is the chunk's message still of interest? Not after outgoing_truncate. */
static inline bool outgoing_is_live(const struct outgoing_ring *ring, struct chunk chunk) {
  return chunk.message - (uint32_t)ring->retired < (uint32_t)(ring->posted - ring->retired);
}

/* The message of a live chunk, and where its bytes are. */
static inline struct outgoing *outgoing_of(struct outgoing_ring *ring, struct chunk chunk) {
  return &ring->slots[chunk.message % LINK_WINDOW];
}

/* The lane has taken this chunk: see struct link_ready. May complete messages. One that is not live
 * changes nothing, here and below. */
void outgoing_written(struct outgoing_ring *ring, struct chunk chunk);

/* The peer has this chunk. May complete and retire messages. */
void outgoing_acked(struct outgoing_ring *ring, struct chunk chunk);

/* Every message is as good as acknowledged (the peer's BYE has the count). */
void outgoing_retire_all(struct outgoing_ring *ring);

/* Forgets the oldest message whose bytes are the user's, unless it is complete, and all after it.
 */
void outgoing_truncate(struct outgoing_ring *ring);

bool outgoing_next_completion(struct outgoing_ring *ring, uint64_t *bytes);

/* ---- receiver ---- */

struct incoming {
  uint8_t *data;     /* the user's; NULL: not posted */
  uint64_t capacity; /* of it */
  uint64_t bytes;    /* of the message, valid once is_known */
  uint64_t landed;   /* bytes of complete frames */
  bool is_known;     /* a frame has brought the size */
  bool is_bounced;   /* its bytes go to a bounce buffer, and are still there */
  bool is_landed;
  uint64_t posted_ns;
};

struct incoming_ring {
  uint64_t posted, granted, completed, taken;
  uint8_t *buffers; /* eager_slots buffers, `stride` apart */
  size_t stride;
  uint32_t eager_bytes;
  unsigned eager_slots;
  struct incoming
      slots[2 * LINK_WINDOW]; /* zeroed once taken: some arrive before they are posted */
};

void incoming_init(struct incoming_ring *ring, uint32_t eager_bytes, unsigned eager_slots,
                   uint8_t *buffers, size_t stride);

/* Of the message, among the slots. */
static inline unsigned incoming_slot(uint64_t message) {
  return message % (2 * LINK_WINDOW);
}

/* 0, -EAGAIN: the window is full, or -EMSGSIZE: the message has arrived and is larger. */
int incoming_post(struct incoming_ring *ring, void *data, uint64_t capacity, uint64_t now_ns);

/* A DATA frame begins, of a chunk that has not landed; its payload goes to *buffer, in a bounce
 * buffer (is_bounced) or the user's. 0, -EPROTO: no credit, or more bytes than the message has, or
 * -EMSGSIZE: larger than the receive. */
int incoming_begin(struct incoming_ring *ring, const struct wire_header *header, uint8_t **buffer);
/* All of it is there. 0, or -EPROTO: more bytes than the message has. */
int incoming_end(struct incoming_ring *ring, const struct wire_header *header);

/* Messages landed in order, whether posted or not. */
uint64_t incoming_landed(const struct incoming_ring *ring);

bool incoming_next_completion(struct incoming_ring *ring, uint64_t *bytes);

#endif
