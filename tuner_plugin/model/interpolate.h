/* SPDX-License-Identifier: Apache-2.0 */
/* interpolate: a curve through points that never swings beyond them (PCHIP), and medians.
 * Owns: nothing; works in the caller's arrays.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef TUNER_PLUGIN_MODEL_INTERPOLATE_H
#define TUNER_PLUGIN_MODEL_INTERPOLATE_H

#include <stddef.h>

struct interpolate_point {
  double x;
  double y;
  double slope; /* interpolate_prepare fills it */
};

/* `points` ascend in x. Makes slopes so that the curve rises where its points rise, and falls where
 * they fall. */
void interpolate_prepare(struct interpolate_point *points, size_t count);

/* `x` within the first and the last point; beyond them their y. */
double interpolate_at(const struct interpolate_point *points, size_t count, double x);

/* Moves points as little as possible so that y never falls: neighbours that fall get their mean. */
void interpolate_make_rising(struct interpolate_point *points, size_t count);

void interpolate_sort(double *values, size_t count);
/* Sorts `values`; 0 for none. */
double interpolate_median(double *values, size_t count);
/* The value that `share` of all do not exceed. */
double interpolate_quantile(double *values, size_t count, double share);

#endif
