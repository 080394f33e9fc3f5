/* SPDX-License-Identifier: Apache-2.0 */
/* expect: one line per failed expectation, and their number.
 * Owns: the counts.  Threads: one.  Blocks: never.  Fails: cannot. */
#ifndef FAKE_CUDA_TEST_EXPECT_H
#define FAKE_CUDA_TEST_EXPECT_H

#include <stdbool.h>

/* Counts, and says where, a condition that does not hold. */
#define EXPECT(condition) expect_true(condition, #condition, __FILE__, __LINE__)
/* The same for a CUDA or NCCL call that must return a given code. */
#define EXPECT_CODE(code, call) expect_code((int)(call), (int)(code), #call, __FILE__, __LINE__)
#define EXPECT_OK(call) EXPECT_CODE(0, call)

bool expect_true(bool holds, const char *text, const char *file, int line);
bool expect_code(int got, int wanted, const char *text, const char *file, int line);
/* Prints the result; the exit status of the program. */
int expect_report(void);

#endif
