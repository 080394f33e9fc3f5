/* SPDX-License-Identifier: Apache-2.0 */
/* interpolate: curves that never swing beyond their points, nor fall where they must not. */
#include <math.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/model/interpolate.h"

UNIT_TEST(curves_stay_between_their_points) {
  struct interpolate_point points[] = {
    { 0, 0, 0 }, { 1, 0, 0 }, { 2, 5, 0 }, { 3, 5.1, 0 }, { 5, 9, 0 }
  };
  interpolate_prepare(points, 5);
  double before = -1;
  for (double x = 0; x <= 5; x += 0.01) {
    double y = interpolate_at(points, 5, x);
    assert_true(y >= before - 1e-9 && y <= 9);
    before = y;
  }
  assert_true(fabs(interpolate_at(points, 5, 2) - 5) < 1e-9);
  assert_true(fabs(interpolate_at(points, 5, 99) - 9) < 1e-9);
}

UNIT_TEST(falling_points_are_pooled) {
  struct interpolate_point points[] = {
    { 0, 1, 0 }, { 1, 5, 0 }, { 2, 3, 0 }, { 3, 1, 0 }, { 4, 7, 0 }
  };
  static const double expected[] = { 1, 3, 3, 3, 7 };
  interpolate_make_rising(points, 5);
  for (int i = 0; i < 5; i++) {
    assert_true(fabs(points[i].y - expected[i]) < 1e-9);
  }
}

UNIT_MAIN(NULL, NULL)
