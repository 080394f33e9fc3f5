/* SPDX-License-Identifier: Apache-2.0 */
/* until: waits for what other threads or processes do, or what the test does again and again.
 * Owns: nothing.  Threads: the test's.  Blocks: until it is so.
 * Fails: the test, after PATIENCE_NS, with the condition. */
#ifndef TESTS_LIB_UNTIL_H
#define TESTS_LIB_UNTIL_H

#include <unistd.h>

#include "common/clock.h"
#include "tests/lib/unit.h"

#define PATIENCE_NS (20 * NS_PER_S)

/* Runs what follows until the condition holds: UNTIL(is_done) { step(); }, or UNTIL(is_done); where
 * others make it hold. */
#define UNTIL(condition)                                                                           \
  for (uint64_t until_end_ns = clock_now_ns() + PATIENCE_NS; !(condition);                         \
       until_breathe(until_end_ns, #condition, __FILE__, __LINE__))

static inline void until_breathe(uint64_t end_ns, const char *condition, const char *file,
                                 int line) {
  _assert_true(clock_now_ns() < end_ns, condition, file, line);
  usleep(20);
}

#endif
