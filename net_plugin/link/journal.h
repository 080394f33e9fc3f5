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

#include <assert.h>
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

/* The frame that was sent as number `count`, acked <= count < sent. */
static inline struct chunk journal_at(const struct journal *journal, uint64_t count) {
  assert(count >= journal->acked && count < journal->sent);
  return journal->chunks[count % LINK_JOURNAL];
}

/* The chunk was handed to the lane. The journal must not be full. */
static inline void journal_append(struct journal *journal, struct chunk chunk) {
  assert(!journal_is_full(journal));
  journal->chunks[journal->sent++ % LINK_JOURNAL] = chunk;
  journal->bytes += chunk.length;
}

/* The oldest chunk is acknowledged, and returned. The journal must not be empty. */
static inline struct chunk journal_take_oldest(struct journal *journal) {
  struct chunk chunk = journal_at(journal, journal->acked);
  journal->acked++;
  journal->bytes -= chunk.length;
  return chunk;
}

/* The newest chunk is known not to have arrived, and returned. Its count will be used again. */
static inline struct chunk journal_take_newest(struct journal *journal) {
  struct chunk chunk = journal_at(journal, journal->sent - 1);
  journal->sent--;
  journal->bytes -= chunk.length;
  return chunk;
}

/* All of it is acknowledged. */
static inline void journal_clear(struct journal *journal) {
  journal->acked = journal->sent;
  journal->bytes = 0;
}

/* Chunks that must be sent again, oldest message first. */
struct requeue {
  struct chunk *chunks; /* a ring of `capacity` */
  uint32_t capacity;    /* lanes x LINK_JOURNAL */
  uint32_t head;
  uint32_t count;
};

/* The i-th, 0 <= i < count. */
static inline struct chunk *requeue_at(const struct requeue *requeue, uint32_t i) {
  assert(i < requeue->count);
  return &requeue->chunks[(requeue->head + i) % requeue->capacity];
}

/* Message numbers are 32 bits of a longer count, so they are compared by their difference. */
static inline bool chunk_is_before(const struct chunk *a, const struct chunk *b) {
  int32_t distance = (int32_t)(a->message - b->message);
  return distance < 0 || (distance == 0 && a->offset < b->offset);
}

/* Puts the chunk where it belongs: messages in order, within a message by offset; mostly at the
 * end. Cannot overflow while new chunks are cut only when the queue is empty: then journals and
 * queue together never hold more than the journals alone could. */
static inline void requeue_insert(struct requeue *requeue, struct chunk chunk) {
  assert(requeue->count < requeue->capacity);
  uint32_t i = requeue->count++;
  for (; i > 0 && chunk_is_before(&chunk, requeue_at(requeue, i - 1)); i--) {
    *requeue_at(requeue, i) = *requeue_at(requeue, i - 1);
  }
  *requeue_at(requeue, i) = chunk;
}

/* Takes the first one. The queue must not be empty. */
static inline struct chunk requeue_take(struct requeue *requeue) {
  struct chunk chunk = *requeue_at(requeue, 0);
  requeue->head = (requeue->head + 1) % requeue->capacity;
  requeue->count--;
  return chunk;
}

/* Forgets the chunks of message number `end` and later ones. */
static inline void requeue_truncate(struct requeue *requeue, uint64_t end) {
  const struct chunk first = { .message = (uint32_t)end };
  while (requeue->count > 0 && !chunk_is_before(requeue_at(requeue, requeue->count - 1), &first)) {
    requeue->count--;
  }
}

#endif
