/* SPDX-License-Identifier: Apache-2.0 */
/* Cubic pieces with Fritsch and Carlson's bound on their slopes. */
#include "tuner_plugin/model/interpolate.h"

#include <stdlib.h>

static double secant(const struct interpolate_point *points, size_t i) {
  return (points[i + 1].y - points[i].y) / (points[i + 1].x - points[i].x);
}

void interpolate_prepare(struct interpolate_point *points, size_t count) {
  for (size_t i = 0; i < count; i++) {
    points[i].slope = 0;
    if (count > 1 && (i == 0 || i == count - 1)) {
      points[i].slope = secant(points, i == 0 ? 0 : i - 1);
    } else if (count > 1) {
      double before = secant(points, i - 1), after = secant(points, i);
      double left = points[i].x - points[i - 1].x, right = points[i + 1].x - points[i].x;
      if (before * after > 0) { /* else an extreme: flat */
        double a = 2 * right + left, b = right + 2 * left;
        points[i].slope = (a + b) / (a / before + b / after);
      }
    }
  }
}

double interpolate_at(const struct interpolate_point *points, size_t count, double x) {
  if (x <= points[0].x) {
    return points[0].y;
  }
  if (x >= points[count - 1].x) {
    return points[count - 1].y;
  }
  size_t i = 0;
  while (points[i + 1].x < x) {
    i++;
  }
  const struct interpolate_point *p = &points[i], *q = &points[i + 1];
  double width = q->x - p->x, t = (x - p->x) / width;
  double t2 = t * t, t3 = t2 * t;
  return p->y * (2 * t3 - 3 * t2 + 1) + p->slope * width * (t3 - 2 * t2 + t) +
         q->y * (3 * t2 - 2 * t3) + q->slope * width * (t3 - t2);
}

/* Pools neighbours that fall; a pool is the points from `start` to before the next pool's. */
void interpolate_make_rising(struct interpolate_point *points, size_t count) {
  for (size_t i = 1; i < count; i++) {
    size_t start = i;
    double sum = points[i].y;
    while (start > 0 && points[start - 1].y > sum / (double)(i - start + 1)) {
      sum += points[--start].y;
    }
    double mean = sum / (double)(i - start + 1);
    for (size_t j = start; j <= i; j++) {
      points[j].y = mean;
    }
  }
}

static int compare_values(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

void interpolate_sort(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare_values);
}

double interpolate_quantile(double *values, size_t count, double share) {
  if (count == 0) {
    return 0;
  }
  interpolate_sort(values, count);
  double at = share * (double)(count - 1);
  size_t low = (size_t)at;
  size_t high = low + 1 < count ? low + 1 : low;
  return values[low] + (at - (double)low) * (values[high] - values[low]);
}

double interpolate_median(double *values, size_t count) {
  return interpolate_quantile(values, count, 0.5);
}
