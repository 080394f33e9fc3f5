/* SPDX-License-Identifier: Apache-2.0 */
/* See unit.h. */
#include "tests/lib/unit.h"

enum { UNIT_TESTS_MAX = 256 };
static struct {
  int line;
  struct CMUnitTest test;
} unit_tests[UNIT_TESTS_MAX];
static size_t unit_test_count;

/* Sorted by line: the order in which constructors run is not specified. */
void unit_add(int line, struct CMUnitTest test) {
  if (unit_test_count == UNIT_TESTS_MAX) {
    abort();
  }
  size_t at = unit_test_count++;
  for (; at > 0 && unit_tests[at - 1].line > line; at--) {
    unit_tests[at] = unit_tests[at - 1];
  }
  unit_tests[at].line = line;
  unit_tests[at].test = test;
}

int unit_run(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
  struct CMUnitTest tests[UNIT_TESTS_MAX];
  for (size_t i = 0; i < unit_test_count; i++) {
    tests[i] = unit_tests[i].test;
  }
  return _cmocka_run_group_tests("tests", tests, unit_test_count, set_up, tear_down);
}

/* Of a program without one of its own. */
int main(void);
__attribute__((weak)) int main(void) {
  return unit_run(NULL, NULL);
}
