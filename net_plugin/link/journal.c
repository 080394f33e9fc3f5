/* SPDX-License-Identifier: Apache-2.0 */
/* journal: rings of chunks. The requeue is sorted by insertion: it fills only when a lane is lost,
 * and then mostly with chunks that belong at its end. */
#include "net_plugin/link/journal.h"

#include <assert.h>

void journal_append(struct journal *journal, struct chunk chunk) {
  assert(!journal_is_full(journal));
  journal->chunks[journal->sent++ % LINK_JOURNAL] = chunk;
  journal->bytes += chunk.length;
}

struct chunk journal_take_oldest(struct journal *journal) {
  assert(journal_count(journal) > 0);
  struct chunk chunk = journal->chunks[journal->acked++ % LINK_JOURNAL];
  journal->bytes -= chunk.length;
  return chunk;
}

struct chunk journal_take_newest(struct journal *journal) {
  assert(journal_count(journal) > 0);
  struct chunk chunk = journal->chunks[--journal->sent % LINK_JOURNAL];
  journal->bytes -= chunk.length;
  return chunk;
}

void journal_clear(struct journal *journal) {
  journal->acked = journal->sent;
  journal->bytes = 0;
}

struct chunk journal_at(const struct journal *journal, uint64_t count) {
  assert(count >= journal->acked && count < journal->sent);
  return journal->chunks[count % LINK_JOURNAL];
}

void requeue_init(struct requeue *requeue, struct chunk *chunks, uint32_t capacity) {
  *requeue = (struct requeue){ .chunks = chunks, .capacity = capacity };
}

static struct chunk *slot_at(const struct requeue *requeue, uint32_t i) {
  return &requeue->chunks[(requeue->head + i) % requeue->capacity];
}

/* Message numbers are 32 bits of a longer count, so they are compared by their difference. */
static bool is_before(const struct chunk *a, const struct chunk *b) {
  int32_t distance = (int32_t)(a->message - b->message);
  return distance < 0 || (distance == 0 && a->offset < b->offset);
}

void requeue_insert(struct requeue *requeue, struct chunk chunk) {
  assert(requeue->count < requeue->capacity);
  uint32_t i = requeue->count++;
  for (; i > 0 && is_before(&chunk, slot_at(requeue, i - 1)); i--) {
    *slot_at(requeue, i) = *slot_at(requeue, i - 1);
  }
  *slot_at(requeue, i) = chunk;
}

struct chunk requeue_take(struct requeue *requeue) {
  assert(requeue->count > 0);
  struct chunk chunk = *slot_at(requeue, 0);
  requeue->head = (requeue->head + 1) % requeue->capacity;
  requeue->count--;
  return chunk;
}

struct chunk requeue_at(const struct requeue *requeue, uint32_t i) {
  assert(i < requeue->count);
  return *slot_at(requeue, i);
}

void requeue_truncate(struct requeue *requeue, uint64_t end) {
  while (requeue->count > 0 &&
         (int32_t)(slot_at(requeue, requeue->count - 1)->message - (uint32_t)end) >= 0) {
    requeue->count--;
  }
}
