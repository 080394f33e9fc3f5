/* SPDX-License-Identifier: Apache-2.0 */
/* ring: bounded queue from one producer thread to one consumer thread, without locks.
 * Owns: its counters; the slots are the caller's.  Threads: one that pushes, one that pops.
 * Blocks: never.  Fails: a push on a full ring and a pop on an empty one return false.
 *
 * What the producer wrote before a push is visible to the consumer after the pop of that item
 * (release on the counter, acquire on the other side); likewise slots going back. Head and tail
 * are on cache lines of their own, since each is written by another core. */
#ifndef COMMON_RING_H
#define COMMON_RING_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RING_CACHE_LINE_BYTES = 64 };

struct ring {
  unsigned char *slots;
  size_t item_bytes;
  uint32_t mask;                                 /* slot count - 1 */
  _Alignas(RING_CACHE_LINE_BYTES) uint32_t head; /* items ever popped; the consumer writes it */
  _Alignas(RING_CACHE_LINE_BYTES) uint32_t tail; /* items ever pushed; the producer writes it */
};

/* `slots` holds slot_count * item_bytes bytes and outlives the ring; slot_count is a power of 2. */
static inline void ring_init(struct ring *ring, void *slots, uint32_t slot_count,
                             size_t item_bytes) {
  assert(slot_count > 0 && (slot_count & (slot_count - 1)) == 0);
  ring->slots = slots;
  ring->item_bytes = item_bytes;
  ring->mask = slot_count - 1;
  ring->head = 0;
  ring->tail = 0;
}

/* Exact for the calling side's own counter, a moment old for the other's. */
static inline uint32_t ring_count(const struct ring *ring) {
  uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
  return __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) - head;
}

static inline bool ring_is_empty(const struct ring *ring) {
  return ring_count(ring) == 0;
}

/* Producer: the free slot to fill in place, or NULL if the ring is full; ring_publish hands it
 * over. */
static inline void *ring_claim(struct ring *ring) {
  uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
  uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
  if (tail - head > ring->mask) {
    return NULL;
  }
  return ring->slots + (size_t)(tail & ring->mask) * ring->item_bytes;
}

static inline void ring_publish(struct ring *ring) {
  uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
  __atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
}

/* Consumer: the oldest item in place, or NULL if the ring is empty; ring_release gives the slot
 * back. */
static inline void *ring_peek(struct ring *ring) {
  uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
  uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
  if (head == tail) {
    return NULL;
  }
  return ring->slots + (size_t)(head & ring->mask) * ring->item_bytes;
}

static inline void ring_release(struct ring *ring) {
  uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
  __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

/* Producer: copies the item in. */
static inline bool ring_push(struct ring *ring, const void *item) {
  void *slot = ring_claim(ring);
  if (!slot) {
    return false;
  }
  memcpy(slot, item, ring->item_bytes);
  ring_publish(ring);
  return true;
}

/* Consumer: copies the item out. */
static inline bool ring_pop(struct ring *ring, void *item) {
  void *slot = ring_peek(ring);
  if (!slot) {
    return false;
  }
  memcpy(item, slot, ring->item_bytes);
  ring_release(ring);
  return true;
}

#endif
