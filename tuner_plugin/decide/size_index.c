/* SPDX-License-Identifier: Apache-2.0 */
/* Divides octaves into buckets and stores the choices for its sizes in each. */
#include "tuner_plugin/decide/size_index.h"

#include <stdbool.h>

static const struct decide_choice nothing = { .algo = DECIDE_NOTHING };

size_t size_index_most_buckets(size_t row_count) {
  /* A row has at most two borders, and rounding up to a power of two less than doubles their
   * number; an octave without borders has one bucket. */
  return 4 * row_count + SIZE_INDEX_OCTAVES;
}

/* 0 and 1 are the first octave. */
static unsigned octave_of(uint64_t bytes) {
  return 63 - (unsigned)__builtin_clzll(bytes | 1);
}

/* ---- making ---- */

/* The borders of rows one by one, ascending. */
struct border_walk {
  const struct decide_row *rows;
  uint32_t count;
  uint32_t at; /* the row of the next border */
  bool is_end; /* it is the row's end */
};

/* Where the next border is; false: there is none left. */
static bool peek(const struct border_walk *walk, uint64_t *border) {
  if (walk->at < walk->count) {
    const struct decide_row *row = &walk->rows[walk->at];
    *border = walk->is_end ? row->bytes_hi : row->bytes_lo;
  }
  return walk->at < walk->count;
}

static void step(struct border_walk *walk) {
  const struct decide_row *row = &walk->rows[walk->at];
  bool has_gap = walk->at + 1 == walk->count || row[1].bytes_lo != row->bytes_hi;
  walk->at += walk->is_end || !has_gap;
  walk->is_end = !walk->is_end && has_gap;
}

/* The choice that applies from the border before the next one. */
static struct decide_choice choice_now(const struct border_walk *walk) {
  if (walk->is_end) {
    return walk->rows[walk->at].choice;
  }
  bool is_inside = walk->at > 0 && walk->at < walk->count &&
                   walk->rows[walk->at - 1].bytes_hi == walk->rows[walk->at].bytes_lo;
  return is_inside ? walk->rows[walk->at - 1].choice : nothing;
}

/* Borders in the octave, `walk` being at the first of them or beyond. */
static uint32_t count_in_octave(struct border_walk walk, unsigned octave) {
  uint64_t border;
  uint32_t count = 0;
  for (; peek(&walk, &border) && octave_of(border) <= octave; step(&walk)) {
    count++;
  }
  return count;
}

/* Log2 of how many buckets an octave is cut into: at most as many as it has sizes. */
static unsigned cut_of(uint32_t borders, unsigned octave) {
  unsigned bits = 0;
  while (bits < octave && (UINT64_C(1) << bits) < borders) {
    bits++;
  }
  return bits;
}

/* The bucket of [start, last]; `walk` moves to the first border after it. */
static struct size_bucket make_bucket(struct border_walk *walk, uint64_t start, uint64_t last) {
  uint64_t border;
  while (peek(walk, &border) && border <= start) {
    step(walk);
  }
  struct size_bucket bucket = { .border = UINT64_MAX };
  bucket.below = bucket.above = choice_now(walk);
  /* The row that covers the start, if any, is this one or the one before. */
  bucket.first = walk->at > 0 && !walk->is_end ? walk->at - 1 : walk->at;
  uint32_t inside = 0;
  for (; peek(walk, &border) && border <= last; step(walk)) {
    if (inside++ == 0) {
      struct border_walk after = *walk;
      step(&after);
      bucket.border = border;
      bucket.above = choice_now(&after);
    }
  }
  if (inside > 1) {
    uint32_t end = walk->at < walk->count ? walk->at + 1 : walk->count;
    bucket.count = end - bucket.first;
  }
  return bucket;
}

size_t size_index_make(const struct decide_row *rows, uint32_t row_count,
                       struct size_bucket *buckets, struct size_index *index) {
  struct border_walk walk = { .rows = rows, .count = row_count };
  size_t made = 0;
  index->rows = rows;
  for (unsigned octave = 0; octave < SIZE_INDEX_OCTAVES; octave++) {
    unsigned bits = cut_of(count_in_octave(walk, octave), octave);
    unsigned shift = octave - bits;
    index->octaves[octave].buckets = &buckets[made];
    index->octaves[octave].shift = shift;
    for (uint64_t bucket = 0; bucket < UINT64_C(1) << bits; bucket++) {
      uint64_t from = (UINT64_C(1) << octave) + (bucket << shift);
      uint64_t start = octave == 0 ? 0 : from;
      buckets[made++] = make_bucket(&walk, start, from + ((UINT64_C(1) << shift) - 1));
    }
  }
  return made;
}

/* ---- asking ---- */

/* Halves the rows that a bucket names. */
static const struct decide_choice *search(const struct size_index *index,
                                          const struct size_bucket *bucket, uint64_t bytes) {
  const struct decide_row *row = &index->rows[bucket->first];
  /* No branch depends on a comparison: a mispredicted one takes longer than all the rest. */
  for (uint32_t left = bucket->count; left > 1;) {
    uint32_t half = left / 2;
    row = row[half].bytes_lo <= bytes ? row + half : row;
    left -= half;
  }
  return bytes >= row->bytes_lo && bytes < row->bytes_hi ? &row->choice : &nothing;
}

const struct decide_choice *size_index_find(const struct size_index *index, uint64_t bytes) {
  unsigned octave = octave_of(bytes);
  uint64_t within = bytes & ((UINT64_C(1) << octave) - 1);
  const struct size_bucket *bucket =
      &index->octaves[octave].buckets[within >> index->octaves[octave].shift];
  if (bucket->count > 0) {
    return search(index, bucket, bytes);
  }
  return bytes < bucket->border ? &bucket->below : &bucket->above;
}
