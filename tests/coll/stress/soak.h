/* SPDX-License-Identifier: Apache-2.0 */
/* soak: operations and sizes in random order until time is over, every element of every result
 * checked, and each completion written to a log: the longest gap in it shows how long the job
 * stalled.
 * Owns: what every rank sends and the reduction of it, in host memory; the log file.
 * Threads: the main thread of every process, all with the same options.
 * Blocks: until time is over, or rank 0 gets SIGUSR1.  Fails: ends the process with a message.
 *
 * The log (--log) is rank 0's, one line of JSON per completed operation, written at once:
 *
 *   {"at_ns": 81200471, "op": "all_reduce", "bytes": 4194304, "us": 9310.4, "wrong": 0}
 *
 * at_ns is CLOCK_MONOTONIC at completion, us the time since its launch. `wrong` counts rank 0's
 * elements; those of all ranks determine the exit status. */
#ifndef TESTS_COLL_STRESS_SOAK_H
#define TESTS_COLL_STRESS_SOAK_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/coll/job.h"

/* Elements by which buffers are larger than the largest size: each run begins at another place, so
 * that data of an earlier run is wrong in every later one. */
enum { SOAK_SLACK = 64 << 10 };

/* A mode (run.h). Prints one line of sums. */
bool soak_run(struct job *job, FILE *table);

#endif
