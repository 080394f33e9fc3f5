/* SPDX-License-Identifier: Apache-2.0 */
/* Values below 128 have a bucket each; above, each power of two has 128. */
#include "net_plugin/tools/perf/histogram.h"

#include <string.h>

void histogram_clear(struct histogram *histogram) {
  memset(histogram, 0, sizeof *histogram);
  histogram->least = UINT64_MAX;
}

static unsigned bucket_of(uint64_t value) {
  if (value >> HISTOGRAM_SUB_BITS == 0) {
    return (unsigned)value;
  }
  unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
  return ((shift + 1) << HISTOGRAM_SUB_BITS) +
         (unsigned)((value >> shift) & ((1u << HISTOGRAM_SUB_BITS) - 1));
}

/* The largest value of a bucket. */
static uint64_t top_of(unsigned bucket) {
  unsigned shift = bucket >> HISTOGRAM_SUB_BITS, low = bucket & ((1u << HISTOGRAM_SUB_BITS) - 1);
  if (shift == 0) {
    return bucket;
  }
  uint64_t bottom = (UINT64_C(1) << HISTOGRAM_SUB_BITS | low) << (shift - 1);
  return bottom + ((UINT64_C(1) << (shift - 1)) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value) {
  histogram->counts[bucket_of(value)]++;
  histogram->count++;
  histogram->sum += value;
  histogram->least = value < histogram->least ? value : histogram->least;
  histogram->most = value > histogram->most ? value : histogram->most;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share) {
  uint64_t seen = 0;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    seen += histogram->counts[i];
    if (seen > 0 && (double)seen >= share * (double)histogram->count) {
      uint64_t top = top_of(i);
      return top < histogram->most ? top : histogram->most;
    }
  }
  return histogram->most;
}

double histogram_mean(const struct histogram *histogram) {
  return histogram->count ? (double)histogram->sum / (double)histogram->count : 0;
}
