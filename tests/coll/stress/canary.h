/* SPDX-License-Identifier: Apache-2.0 */
/* canary: host memory with a known pattern, mapped where others have just freed memory. It detects
 * late writes to freed memory, which otherwise crash only sometimes.
 * Owns: the mappings and, from canary_begin to canary_end, one thread.
 * Threads: called from the main thread.
 * Blocks: canary_end, for a millisecond.
 * Fails: canary_begin and canary_fill end the process with a message if there is no memory. */
#ifndef TESTS_COLL_STRESS_CANARY_H
#define TESTS_COLL_STRESS_CANARY_H

#include <stdint.h>

/* From now on maps a piece from time to time, while another thread frees memory. */
void canary_begin(void);
void canary_end(void);

/* Maps the rest of the pieces at once. */
void canary_fill(void);

/* Bytes that have changed, the first of which is reported on stderr; unmaps everything. */
uint64_t canary_check(void);

#endif
