/* SPDX-License-Identifier: Apache-2.0 */
/* fault_state: what fault.c and fault_calls.c share.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_FAULT_STATE_H
#define TESTS_LIB_FAULT_STATE_H

#include "tests/lib/fault.h"

/* True, with errno set, for the one call that has to fail. */
bool fault_is_due(enum fault_call call);

/* "CALL K ERRNO FILE": of the process that has this variable, with FILE of one byte, not 0 once it
 * has failed. */
#define FAULT_VARIABLE "STRATUS_TEST_FAULT"
/* The byte of that file. */
void fault_note_failure_in(bool *flag);

/* How many of so many bytes may be moved at once. */
size_t fault_shortened(size_t bytes);

#endif
