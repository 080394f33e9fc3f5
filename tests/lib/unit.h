/* SPDX-License-Identifier: Apache-2.0 */
/* unit: what every unit test includes to use cmocka, and the one list of a program's tests.
 *
 * cmocka.h needs these headers before it and does not include them itself. A program whose list is
 * made while it runs (test_lanes) hands cmocka its own.
 * Owns: the list.  Threads: the test's.  Blocks: as the tests.  Fails: the program, at more than
 * UNIT_TESTS_MAX. */
#ifndef TESTS_LIB_UNIT_H
#define TESTS_LIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

/* A test of the file, which stands at this line. */
void unit_add(int line, struct CMUnitTest test);

/* Runs all tests, in the order of the file, between set_up and tear_down of the whole. */
int unit_run(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* A test, which is run once with each of the pointers that follow, which its set_up finds in
 * *state: UNIT_TEST_EACH(its_name, set_up, tear_down, &tcp, &rdma) { ... } */
#define UNIT_TEST_EACH(name, set_up, tear_down, ...)                                               \
  static void name(void **state);                                                                  \
  __attribute__((constructor)) static void unit_add_##name(void) {                                 \
    static const void *const states[] = { __VA_ARGS__ };                                           \
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {                                  \
      void *each = (void *)(uintptr_t)states[i];                                                   \
      unit_add(__LINE__, (struct CMUnitTest){ #name, name, set_up, tear_down, each });             \
    }                                                                                              \
  }                                                                                                \
  static void name(__attribute__((unused)) void **state)
/* Either of set_up and tear_down may be NULL. */
#define UNIT_TEST_WITH(name, set_up, tear_down) UNIT_TEST_EACH(name, set_up, tear_down, NULL)
#define UNIT_TEST(name) UNIT_TEST_WITH(name, NULL, NULL)

/* At the end of a file whose tests have a set_up and tear_down of the whole; others need no main.
 */
#define UNIT_MAIN(set_up, tear_down)                                                               \
  int main(void) {                                                                                 \
    return unit_run(set_up, tear_down);                                                            \
  }

/* Is this the night's run (tests/unit/run --long), which does all of what else is a sample? */
static inline bool unit_has_time(void) {
  return getenv("STRATUS_TEST_LONG") != NULL;
}

/* Skips a test, and says why: what the machine lacks. tests/unit/run shows it. */
#define SKIP_BECAUSE(why)                                                                          \
  do {                                                                                             \
    print_message("# skipped: " why "\n");                                                         \
    skip();                                                                                        \
  } while (0)

/* The same in an emulated process (tests/unit/run ARCH=aarch64), which lacks what `why` says. */
#define SKIP_IF_EMULATED(why)                                                                      \
  do {                                                                                             \
    if (getenv("STRATUS_TEST_TOOLS")) {                                                            \
      SKIP_BECAUSE(why);                                                                           \
    }                                                                                              \
  } while (0)

#endif
