/* SPDX-License-Identifier: Apache-2.0 */
/* unmade: rounds in which the first operation of new communicators finds a connection that cannot
 * be made; every rank then aborts its own by ncclCommAbort, as NCCL's guide says (communicators do
 * not block): when NCCL reports an error to it, or else when the patience is over.
 * Owns: nothing.  Threads: the main thread of every process.
 * Blocks: while a round runs.  Fails: ends the process with a message where no round can go on. */
#ifndef TESTS_COLL_STRESS_UNMADE_H
#define TESTS_COLL_STRESS_UNMADE_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/coll/job.h"

/* A mode (run.h): false where a round had no rank to which an error was reported, one whose
 * operation was done, or an abort that took long. */
bool unmade_run(struct job *job, FILE *table);

#endif
