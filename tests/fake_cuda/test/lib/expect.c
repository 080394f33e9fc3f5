/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations and their count. */
#include <stdio.h>

#include "tests/fake_cuda/test/lib/expect.h"

static int checked, failed;

bool expect_true(bool holds, const char *text, const char *file, int line) {
  checked++;
  if (!holds) {
    failed++;
    printf("%s:%d: expected %s\n", file, line, text);
  }
  return holds;
}

bool expect_code(int got, int wanted, const char *text, const char *file, int line) {
  checked++;
  if (got != wanted) {
    failed++;
    printf("%s:%d: %s returned %d instead of %d\n", file, line, text, got, wanted);
  }
  return got == wanted;
}

int expect_report(void) {
  printf("%s, %d of %d expectations\n", failed ? "FAILED" : "PASSED", checked - failed, checked);
  return failed ? 1 : 0;
}
