/* SPDX-License-Identifier: Apache-2.0 */
/* histogram: a log-linear histogram of times: the width of each bucket is at most 1/128 of its
 * value. Owns: only its own struct.  Threads: its caller's.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_HISTOGRAM_H
#define NET_PLUGIN_TOOLS_PERF_HISTOGRAM_H

#include <stdint.h>

enum {
  HISTOGRAM_SUB_BITS = 7,
  HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

struct histogram {
  uint64_t counts[HISTOGRAM_BUCKETS];
  uint64_t count, sum, least, most;
};

void histogram_clear(struct histogram *histogram);
void histogram_add(struct histogram *histogram, uint64_t value);

/* The quantile `share` (0 to 1), rounded up to the end of its bucket; 0 if empty. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);
double histogram_mean(const struct histogram *histogram);

#endif
