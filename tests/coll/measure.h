/* SPDX-License-Identifier: Apache-2.0 */
/* measure: times and checks one case: an operation of one size, type and reduction.
 * Owns: one staging buffer in host memory.  Threads: the main thread of every process, all with the
 * same case. Blocks: while the case runs.  Fails: ends the process with a message. */
#ifndef COLL_MEASURE_H
#define COLL_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/coll/job.h"
#include "tests/coll/operation.h"

struct measure_result {
  bool has_run, has_check;
  double time_us;   /* of one iteration, mean of the processes */
  double *times_us; /* of each iteration, the slowest process's; NULL without --per-iteration */
  int iterations;   /* per process */
  uint64_t wrong;   /* elements, over all ranks */
  uint64_t out_of_bounds; /* bytes around receive buffers that were written */
  uint64_t done_ns;       /* of measure_check: when the run was over */
};

/* Where NCCL is called for a case by one of `ranks`. */
struct operation_rank measure_place(const struct operation_case *measure_case,
                                    const struct job_gpu *gpu, int ranks, bool is_in_place);

/* A result that has not run (the operation cannot work in place) is all zero. */
void measure_run(struct job *job, const struct operation_case *measure_case, bool is_in_place,
                 struct measure_result *result);

/* One run with checked data, without a meeting of the processes: others may do something else
 * meanwhile. The seed is the same at all that take part; with job->arrays it is the place where
 * they begin. The time is this process's. What it finds is added to `result`; measure_add_up makes
 * it that of all processes, which call it at the same time. */
void measure_check(struct job *job, const struct operation_case *measure_case, bool is_in_place,
                   uint64_t seed, struct measure_result *result);
void measure_add_up(const struct job *job, struct measure_result *result);

/* All of the first GPU's buffers from job->contents, the same at every process. */
void check_fill_with_contents(const struct job *job);

#endif
