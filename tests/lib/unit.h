/* SPDX-License-Identifier: Apache-2.0 */
/* unit: what every unit test includes to use cmocka.
 *
 * cmocka.h needs these headers before it and does not include them itself. */
#ifndef TESTS_LIB_UNIT_H
#define TESTS_LIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

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
