/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts octaves into buckets and notes for each of them the last row that begins before it. */
#include "tuner_plugin/decide/size_index.h"

#include "tuner_plugin/decide/decide.h"

size_t size_index_most_buckets(size_t row_count) {
  /* Rounding up to a power of two less than doubles; one more ends the last octave. */
  return 2 * row_count + SIZE_INDEX_OCTAVES + 1;
}

/* Rows from `at` on that begin in the octave. */
static uint32_t count_in_octave(const struct decide_row *rows, uint32_t row_count, uint32_t at,
                                unsigned octave) {
  uint32_t end = at;
  while (end < row_count && size_index_octave(rows[end].bytes_lo) == octave) {
    end++;
  }
  return end - at;
}

/* Log2 of how many buckets an octave is cut into: at most as many as it has sizes. */
static unsigned cut_of(uint32_t rows_in_octave, unsigned octave) {
  unsigned bits = 0;
  while (bits < octave && (UINT64_C(1) << bits) < rows_in_octave) {
    bits++;
  }
  return bits;
}

size_t size_index_make(const struct decide_row *rows, uint32_t row_count, uint32_t *buckets,
                       struct size_index *index) {
  size_t made = 0;
  uint32_t begun = 0; /* rows that begin before this octave */
  uint32_t at = 0;    /* the last row that begins at or before the bucket */
  for (unsigned octave = 0; octave < SIZE_INDEX_OCTAVES; octave++) {
    uint32_t in_octave = count_in_octave(rows, row_count, begun, octave);
    unsigned bits = cut_of(in_octave, octave);
    unsigned shift = octave - bits;
    index->octaves[octave].buckets = &buckets[made];
    index->octaves[octave].shift = shift;
    for (uint64_t bucket = 0; bucket < UINT64_C(1) << bits; bucket++) {
      uint64_t bytes = octave == 0 ? 0 : (UINT64_C(1) << octave) + (bucket << shift);
      while (at + 1 < row_count && rows[at + 1].bytes_lo <= bytes) {
        at++;
      }
      buckets[made++] = at;
    }
    begun += in_octave;
  }
  buckets[made++] = row_count - 1;
  return made;
}
