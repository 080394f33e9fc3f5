/* SPDX-License-Identifier: Apache-2.0 */
/* size_index: the choice for a size, found in one cache line.
 * Owns: nothing; works in memory of the caller's.  Threads: any, once made it is constant.
 * Blocks: never.  Fails: cannot.
 *
 * A call must be answered within tens of nanoseconds. A binary search over thousands of rows is too
 * slow: each step depends on the one before, and each cache miss takes 100 ns. So sizes are divided
 * into buckets, and each bucket holds its answer. A border is a size at which a row begins, or ends
 * before a gap; every octave [2^n, 2^(n+1)) has as many equal buckets as borders, rounded up to a
 * power of two. If borders are spread evenly, no bucket has more than one inside; if they are
 * crowded, the bucket holds the range of rows to search. */
#ifndef TUNER_PLUGIN_DECIDE_SIZE_INDEX_H
#define TUNER_PLUGIN_DECIDE_SIZE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/row.h"

enum { SIZE_INDEX_OCTAVES = 64, SIZE_INDEX_ALIGNMENT = 64 };

/* Two fill a cache line. */
struct size_bucket {
  uint64_t border; /* sizes below it have the first choice, all others the second */
  struct decide_choice below, above;
  uint32_t first, count; /* count > 0: instead, one of these rows may cover the size */
};

struct size_index {
  const struct decide_row *rows;
  struct {
    const struct size_bucket *buckets;
    uint64_t shift; /* log2 of a bucket's width in bytes */
  } octaves[SIZE_INDEX_OCTAVES];
};

/* At most so many buckets for so many rows. */
size_t size_index_most_buckets(size_t row_count);

/* `rows`, at least one, ascend without overlap. `buckets`, aligned to SIZE_INDEX_ALIGNMENT, has
 * room for as many as said above; returns how many were made. */
size_t size_index_make(const struct decide_row *rows, uint32_t row_count,
                       struct size_bucket *buckets, struct size_index *index);

/* The choice of the row that covers the size; DECIDE_NOTHING if there is none. */
const struct decide_choice *size_index_find(const struct size_index *index, uint64_t bytes);

#endif
