/* SPDX-License-Identifier: Apache-2.0 */
/* fault_state: what fault.c and fault_calls.c share.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_FAULT_STATE_H
#define TESTS_LIB_FAULT_STATE_H

#include "tests/lib/fault.h"

/* True, with errno set, for the one call that has to fail, or for one that is refused. */
bool fault_is_due(enum fault_call call);
bool fault_is_refused(int level, int option);

/* How many of so many bytes may be moved at once. */
size_t fault_shortened(size_t bytes);

#endif
