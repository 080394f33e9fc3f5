/* SPDX-License-Identifier: Apache-2.0 */
/* stress: jobs for tests/netns and tests/vm to break, in place of the table: --soak, --abort,
 * --unmade. True: all is right. `table`, for results, is NULL but at process 0. Owns: nothing
 * between calls, but for what a mode says. Threads: the main thread of every process, with the same
 * options. Blocks: until all rounds are over.  Fails: ends the process with a message where a round
 * cannot go on. */
#ifndef TESTS_COLL_STRESS_STRESS_H
#define TESTS_COLL_STRESS_STRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/coll/job.h"

/* Rounds in which an AllReduce is aborted half way by ncclCommAbort, as elastic training does when
 * a rank is lost, and communicators are made again. In turn all ranks abort together, one after the
 * other, or one does and the others when NCCL reports an error to them.
 *
 * Before each abort the sums of small sizes are checked, now and then that of the whole size; after
 * it the memory that it freed is watched, and descriptors, threads and memory are compared with
 * those of a round in which caches and pools had filled. False where a sum was wrong, freed memory
 * was written, an error was not reported in time, an abort took long, or something has grown. */
bool abort_run(struct job *job, FILE *table);

/* Before any library is loaded. NCCL's threads are new in each round and would allocate from other
 * arenas of malloc, whose leftovers hide what is lost: so there is one arena. Large blocks return
 * to the system when they are freed. */
void abort_prepare(void);

/* Operations and sizes in random order until time is over, or rank 0 gets SIGUSR1, every element of
 * every result checked, and each completion written to a log: the longest gap in it shows how long
 * the job stalled. Owns what every rank sends and the reduction of it, in host memory; the log
 * file. Prints one line of sums.
 *
 * The log (--log) is rank 0's, one line of JSON per completed operation, written at once:
 *
 *   {"at_ns": 81200471, "op": "all_reduce", "bytes": 4194304, "us": 9310.4, "wrong": 0}
 *
 * at_ns is CLOCK_MONOTONIC at completion, us the time since its launch. `wrong` counts rank 0's
 * elements; those of all ranks determine the exit status. */
bool soak_run(struct job *job, FILE *table);

/* Rounds in which the first operation of new communicators finds a connection that cannot be made;
 * every rank then aborts its own by ncclCommAbort, as NCCL's guide says (communicators do not
 * block): when NCCL reports an error to it, or else when the patience is over. False where a round
 * had no rank to which an error was reported, one whose operation was done, or an abort that took
 * long. */
bool unmade_run(struct job *job, FILE *table);

#endif
