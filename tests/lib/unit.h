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

/* Skips a test in an emulated process (tests/unit/run ARCH=aarch64), which lacks what `why` says.
 */
#define SKIP_IF_EMULATED(why)                                                                      \
  do {                                                                                             \
    if (getenv("STRATUS_TEST_TOOLS")) {                                                            \
      print_message("# emulated: " why "\n");                                                      \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

#endif
