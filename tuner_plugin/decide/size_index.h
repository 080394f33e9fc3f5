/* SPDX-License-Identifier: Apache-2.0 */
/* size_index: which row of a table is the last that begins at or before a size.
 * Owns: nothing; works in memory of the caller's.  Threads: any, once made it is constant.
 * Blocks: never.  Fails: cannot.
 *
 * A call is answered in tens of nanoseconds, which a search over thousands of rows is too slow for:
 * each of its steps waits for the one before. So sizes are cut into buckets, and a bucket knows its
 * rows: every octave [2^n, 2^(n+1)) has as many equal buckets as rows begin in it, rounded up to a
 * power of two. Rows that are spread evenly over their octave are then found at once; the others by
 * halving inside of one bucket. */
#ifndef TUNER_PLUGIN_DECIDE_SIZE_INDEX_H
#define TUNER_PLUGIN_DECIDE_SIZE_INDEX_H

#include <stddef.h>
#include <stdint.h>

enum { SIZE_INDEX_OCTAVES = 64 };

/* Bucket b of an octave: its sizes have their row from buckets[b] to buckets[b + 1]. */
struct size_index {
  struct {
    const uint32_t *buckets;
    uint64_t shift; /* log2 of a bucket's width in bytes */
  } octaves[SIZE_INDEX_OCTAVES];
};

/* At most so many buckets for this many rows. */
size_t size_index_most_buckets(size_t row_count);

struct decide_row;

/* `rows`, at least one, ascend. `buckets` has room for as many as said above; returns how many were
 * made. */
size_t size_index_make(const struct decide_row *rows, uint32_t row_count, uint32_t *buckets,
                       struct size_index *index);

/* 0 and 1 are the first octave. */
static inline unsigned size_index_octave(uint64_t bytes) {
  return 63 - (unsigned)__builtin_clzll(bytes | 1);
}

/* The two rows between which, both included, the row for `bytes` is: the last that begins at or
 * before it, or row 0 if none does. */
static inline const uint32_t *size_index_find(const struct size_index *index, uint64_t bytes) {
  unsigned octave = size_index_octave(bytes);
  uint64_t within = bytes & ((UINT64_C(1) << octave) - 1);
  return &index->octaves[octave].buckets[within >> index->octaves[octave].shift];
}

#endif
