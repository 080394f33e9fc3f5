/* SPDX-License-Identifier: Apache-2.0 */
/* abort: rounds in which an AllReduce is aborted half way by ncclCommAbort, as elastic training
 * does when a rank is lost, and communicators are made again. In turn all ranks abort together, one
 * after the other, or one does and the others when NCCL reports an error to them.
 *
 * Before each abort the sums of small sizes are checked, now and then that of the whole size; after
 * it the memory that it freed is watched (canary.h), and descriptors, threads and memory are
 * compared with those of a round in which caches and pools had filled.
 * Owns: nothing between calls.  Threads: the main thread of every process, with the same options.
 * Blocks: until all rounds are over.  Fails: ends the process with a message where a round cannot
 * go on. */
#ifndef TESTS_COLL_STRESS_ABORT_H
#define TESTS_COLL_STRESS_ABORT_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/coll/job.h"

/* A mode (run.h): false where a sum was wrong, freed memory was written, an error was not reported
 * in time, an abort took long, or something has grown. */
bool abort_run(struct job *job, FILE *table);

/* Before any library is loaded. NCCL's threads are new in each round and would allocate from other
 * arenas of malloc, whose leftovers hide what is lost: so there is one arena. Large blocks return
 * to the system when they are freed. */
void abort_prepare(void);

#endif
