/* SPDX-License-Identifier: Apache-2.0 */
/* The clock goes on and measures in nanoseconds. */
#include "common/clock.h"

#include <time.h>

#include "tests/lib/unit.h"

UNIT_TEST(never_goes_back) {
  uint64_t before_ns = clock_now_ns();
  for (int i = 0; i < 10000; i++) {
    uint64_t now_ns = clock_now_ns();
    assert_true(now_ns >= before_ns);
    before_ns = now_ns;
  }
}

UNIT_TEST(sleep_is_measured) {
  const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
  uint64_t start_ns = clock_now_ns();
  nanosleep(&pause, NULL);
  uint64_t slept_ns = clock_now_ns() - start_ns;
  assert_true(slept_ns >= 20 * NS_PER_MS);
  assert_true(slept_ns < 20 * NS_PER_S); /* a wrong unit would be out by 1000 */
}

UNIT_MAIN(NULL, NULL)
