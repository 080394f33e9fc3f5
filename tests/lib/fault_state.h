/* SPDX-License-Identifier: Apache-2.0 */
/* fault_state: what fault.c and fault_calls.c share.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_FAULT_STATE_H
#define TESTS_LIB_FAULT_STATE_H

#include "tests/lib/fault.h"

/* True, with errno set, for the one call that has to fail, or for one that is refused. */
bool fault_is_due(enum fault_call call);
bool fault_is_refused(int level, int option);

/* What has happened since fault_forget: kept in memory, or in a file that outlives a process. */
struct fault_record {
  bool has_failed;
  bool is_called[FAULT_CALL_COUNT];
};
/* Adds what another process did. */
void fault_add(const struct fault_record *other);
void fault_keep_in(struct fault_record *record);

/* "CALL K ERRNO FILE": of the process that has this variable, with FILE of a struct fault_record.
 */
#define FAULT_VARIABLE "STRATUS_TEST_FAULT"

/* How many of so many bytes may be moved at once. */
size_t fault_shortened(size_t bytes);

#endif
