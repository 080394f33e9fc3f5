/* SPDX-License-Identifier: Apache-2.0 */
/* The mode that auto chooses, and how many engines there are. */
#include "net_plugin/engine/engine_state.h"

#include "tests/lib/unit.h"

UNIT_TEST(numbers_of_engines) {
  assert_int_equal(progress_mode_engines(1, 1), 1);
  assert_int_equal(progress_mode_engines(7, 1), 1);
  assert_int_equal(progress_mode_engines(8, 1), 2);
  assert_int_equal(progress_mode_engines(31, 1), 2);
  assert_int_equal(progress_mode_engines(32, 1), 4);
  assert_int_equal(progress_mode_engines(192, 2), 2);
  assert_int_equal(progress_mode_engines(192, 3), 1);
  assert_int_equal(progress_mode_engines(192, 8), 1);
}

UNIT_TEST(auto_needs_cpus) {
  assert_int_equal(progress_mode_choose(2, 1), PROGRESS_INLINE);
  assert_int_equal(progress_mode_choose(3, 1), PROGRESS_INLINE);
  assert_int_equal(progress_mode_choose(4, 1), PROGRESS_THREAD);
  assert_int_equal(progress_mode_choose(4, 2), PROGRESS_THREAD);
  assert_int_equal(progress_mode_choose(4, 3), PROGRESS_INLINE);
  assert_int_equal(progress_mode_choose(5, 4), PROGRESS_INLINE);
}

UNIT_MAIN(NULL, NULL)
