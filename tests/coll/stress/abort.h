/* SPDX-License-Identifier: Apache-2.0 */
/* abort: rounds in which communicators are made, give exact sums, and are aborted by ncclCommAbort
 * in the middle of an operation, as watchdogs and elastic jobs do, in one process.
 * Owns: the watch over buffers and memory of one round; baseline and totals.
 * Threads: the main thread of every process, all with the same options.
 * Blocks: while a round runs.  Fails: ends the process with a message when NCCL returns an error.
 *
 * One round: the sums of small operations are checked (first of all, those after the abort before);
 * the operation is started, and aborted when no rank has finished it; all user buffers are freed
 * and allocated again, usually at the same addresses, and these, with memory that is mapped where
 * NCCL freed its own, must stay as they are for a while; descriptors, threads and memory are
 * counted; new communicators are made. */
#ifndef TESTS_COLL_STRESS_ABORT_H
#define TESTS_COLL_STRESS_ABORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/coll/job.h"

enum abort_pattern {
  ABORT_TOGETHER,    /* all ranks at once */
  ABORT_STAGGERED,   /* one after the other, from some rank on */
  ABORT_AFTER_ERROR, /* one rank; the others when NCCL reports an error to them */
  ABORT_PATTERNS
};
extern const char *const abort_pattern_names[ABORT_PATTERNS];

/* What a process has in use. */
struct abort_resources {
  int descriptors, threads;
  double memory_mib; /* resident */
};

/* One round, over all ranks; the same at every process. */
struct abort_round {
  int number; /* from 1 */
  enum abort_pattern pattern;
  int first; /* the rank that aborts first */
  enum operation operation;
  size_t bytes;
  int launches;                /* until one was not finished when it was to be aborted */
  double wait_ms;              /* from the launch to the decision */
  double abort_ms;             /* ncclCommAbort until the stream is idle, the slowest rank's */
  double moved_percent;        /* of the result that was written by then, mean of the ranks */
  int noticed;                 /* ranks that aborted because NCCL reported an error */
  int unnoticed;               /* that should have, and got no report in time: wrong */
  uint64_t wrong;              /* elements of the sums checked before */
  uint64_t out_of_bounds;      /* bytes around their buffers */
  uint64_t touched;            /* bytes of freed memory that were written: wrong */
  int same_addresses;          /* user buffers that were allocated where they had been */
  struct abort_resources most; /* each the largest of all ranks, after the round */
};

/* All rounds. `growth` is the largest of any rank, from round `baseline_round` to the last one. */
struct abort_result {
  int rounds, baseline_round;
  int slow;   /* aborts that took ABORT_LIMIT_MS or more */
  int middle; /* rounds in which a part of the result had been written, and not all */
  int unnoticed, same_addresses;
  double max_abort_ms;
  uint64_t wrong, out_of_bounds, touched;
  struct abort_resources growth;
  bool is_good;
};

/* Limits: how long an abort may take, and how much memory an allocator may keep. */
enum { ABORT_LIMIT_MS = 2000, ABORT_GROWTH_MIB_MAX = 16 };

struct abort_test;

/* A mode (run.h): all rounds, and what came of them. */
bool abort_run(struct job *job, FILE *table);

/* Before any library is loaded. NCCL's threads are new in each round and would allocate from other
 * arenas of malloc, whose leftovers hide what is lost: so there is one arena. Large blocks return
 * to the system when they are freed. */
void abort_prepare(void);

struct abort_test *abort_open(struct job *job);
void abort_run_round(struct abort_test *test, struct abort_round *round);

/* Checks sums once more; frees everything. The job has communicators that work. */
void abort_close(struct abort_test *test, struct abort_result *result);

#endif
