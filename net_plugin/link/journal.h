/* SPDX-License-Identifier: Apache-2.0 */
/* journal: the chunks that were sent on a lane and not yet acknowledged, in the order of sending,
 * and the queue of chunks that a lost lane gave back.
 * Owns: only its own structs; the queue's array is the caller's.  Threads: the link's.
 * Blocks: never.  Fails: cannot; the caller asks journal_is_full, and the queue cannot overflow
 * (see requeue_insert).
 *
 * Acknowledgements are counts: how many frames of the lane the peer has. So the journal is
 * a ring with two counters, `acked` <= `sent` <= `acked` + LINK_JOURNAL. The counters go on over
 * the epochs of the lane (wire.h). */
#ifndef NET_PLUGIN_LINK_JOURNAL_H
#define NET_PLUGIN_LINK_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

/* A slice of a message. 16 bytes, because there are 64 x 64 of them. */
struct chunk {
  uint64_t offset;
  uint32_t length;
  uint32_t message; /* low half of the sequence number; at most LINK_WINDOW are in flight */
};

struct journal {
  uint64_t acked; /* frames that the peer is known to have */
  uint64_t sent;
  uint64_t bytes; /* of the chunks between them */
  struct chunk chunks[LINK_JOURNAL];
};

static inline unsigned journal_count(const struct journal *journal) {
  return (unsigned)(journal->sent - journal->acked);
}

static inline bool journal_is_full(const struct journal *journal) {
  return journal_count(journal) == LINK_JOURNAL;
}

/* The chunk was handed to the lane. The journal must not be full. */
void journal_append(struct journal *journal, struct chunk chunk);

/* The oldest chunk is acknowledged, and returned. The journal must not be empty. */
struct chunk journal_take_oldest(struct journal *journal);

/* The newest chunk is known not to have arrived, and returned. Its count will be used again. */
struct chunk journal_take_newest(struct journal *journal);

/* All of it is acknowledged. */
void journal_clear(struct journal *journal);

/* The frame that was sent as number `count`, acked <= count < sent. */
struct chunk journal_at(const struct journal *journal, uint64_t count);

/* Chunks that must be sent again, oldest message first. */
struct requeue {
  struct chunk *chunks; /* a ring of `capacity` */
  uint32_t capacity;    /* lanes x LINK_JOURNAL */
  uint32_t head;
  uint32_t count;
};

void requeue_init(struct requeue *requeue, struct chunk *chunks, uint32_t capacity);

/* Puts the chunk where it belongs: messages in order, within a message by offset. Cannot overflow
 * while new chunks are cut only when the queue is empty: then journals and queue together never
 * hold more than the journals alone could. */
void requeue_insert(struct requeue *requeue, struct chunk chunk);

/* Takes the first one. The queue must not be empty. */
struct chunk requeue_take(struct requeue *requeue);

/* The i-th, 0 <= i < count, for checks. */
struct chunk requeue_at(const struct requeue *requeue, uint32_t i);

/* Forgets the chunks of message number `end` and later ones. */
void requeue_truncate(struct requeue *requeue, uint64_t end);

#endif
