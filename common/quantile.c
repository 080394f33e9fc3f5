/* SPDX-License-Identifier: Apache-2.0 */
/* See quantile.h. */
#include "common/quantile.h"

#include <stdlib.h>

static int compare_values(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

void quantile_sort(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare_values);
}

double quantile_at(double *values, size_t count, double share) {
  if (count == 0) {
    return 0;
  }
  quantile_sort(values, count);
  double at = share * (double)(count - 1);
  size_t low = (size_t)at;
  size_t high = low + 1 < count ? low + 1 : low;
  return values[low] + (at - (double)low) * (values[high] - values[low]);
}

double quantile_median(double *values, size_t count) {
  return quantile_at(values, count, 0.5);
}
