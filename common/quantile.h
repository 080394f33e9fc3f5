/* SPDX-License-Identifier: Apache-2.0 */
/* quantile: medians and other quantiles.
 * Owns: nothing; sorts the caller's array.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_QUANTILE_H
#define COMMON_QUANTILE_H

#include <stddef.h>

void quantile_sort(double *values, size_t count);
/* 0 for none. */
double quantile_median(double *values, size_t count);
/* The value that `share` of all do not exceed. */
double quantile_at(double *values, size_t count, double share);

#endif
