/* SPDX-License-Identifier: Apache-2.0 */
/* How many engines there are. */
#include "net_plugin/engine/drive.h"

#include "tests/lib/unit.h"

static void numbers_of_engines(void **state) {
  (void)state;
  assert_int_equal(drive_engines(1, 1), 1);
  assert_int_equal(drive_engines(7, 1), 1);
  assert_int_equal(drive_engines(8, 1), 2);
  assert_int_equal(drive_engines(31, 1), 2);
  assert_int_equal(drive_engines(32, 1), 4);
  assert_int_equal(drive_engines(192, 2), 2);
  assert_int_equal(drive_engines(192, 3), 1);
  assert_int_equal(drive_engines(192, 8), 1);
  assert_false(drive_has_room(2, 1));
  assert_false(drive_has_room(3, 1));
  assert_true(drive_has_room(4, 1));
  assert_true(drive_has_room(4, 2));
  assert_false(drive_has_room(4, 3));
  assert_false(drive_has_room(5, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_of_engines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
