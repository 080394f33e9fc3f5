/* SPDX-License-Identifier: Apache-2.0 */
/* The clock goes on and measures in nanoseconds. */
#include "common/clock.h"

#include <time.h>

#include "tests/lib/unit.h"

static void never_goes_back(void **state) {
  (void)state;
  uint64_t before_ns = clock_now_ns();
  for (int i = 0; i < 10000; i++) {
    uint64_t now_ns = clock_now_ns();
    assert_true(now_ns >= before_ns);
    before_ns = now_ns;
  }
}

static void sleep_is_measured(void **state) {
  (void)state;
  const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
  uint64_t start_ns = clock_now_ns();
  nanosleep(&pause, NULL);
  uint64_t slept_ns = clock_now_ns() - start_ns;
  assert_true(slept_ns >= 20 * NS_PER_MS);
  assert_true(slept_ns < 20 * NS_PER_S); /* a wrong unit would be out by 1000 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(never_goes_back),
    cmocka_unit_test(sleep_is_measured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
