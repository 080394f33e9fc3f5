/* SPDX-License-Identifier: Apache-2.0 */
/* fault: makes the k-th memory allocation fail.
 * Owns: the counters, which are the whole process's.  Threads: any; the count is of all of them.
 * Blocks: never.  Fails: cannot.
 *
 * The linker sends the calls of our objects (not of shared libraries) here with --wrap. A test
 * repeats an operation with k = 1, 2, ... until it runs through without a failure:
 *
 *   for (unsigned long k = 1;; k++) {
 *     fault_fail_allocation(k);
 *     int result = operation();
 *     if (!fault_clear()) {
 *       break;   // the allocation number k never came: every one has failed once
 *     }
 *     assert_int_equal(result, -ENOMEM);
 *   } */
#ifndef TESTS_LIB_FAULT_H
#define TESTS_LIB_FAULT_H

#include <stdbool.h>

/* The k-th allocation from now on fails, counted from 1; those after it work again. */
void fault_fail_allocation(unsigned long k);

/* Ends the fault; true if the failure has happened. */
bool fault_clear(void);

#endif
