/* SPDX-License-Identifier: Apache-2.0 */
/* check: moves patterns to GPUs and results back, and compares them.
 * Owns: one staging buffer in host memory.  Threads: the main thread.
 * Blocks: while the GPU copies.  Fails: ends the process with a message.
 *
 * No GPU code of its own: so it runs on any GPU, real or emulated, without a CUDA compiler. */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/coll/measure.h"

/* Where a rank's data is. In place, `send` lies within the receive buffer, or the other way round.
 */
struct check_buffers {
  char *send, *recv;
  char *begin, *end; /* of all that NCCL may write: guards lie on both sides */
};

struct check_buffers check_place(const struct operation_case *measure_case,
                                 const struct job_gpu *gpu, bool is_in_place);

/* Fills the buffers of all GPUs of this process, the guards, and, with something that is no result,
 * the rest. */
void check_prepare(const struct job *job, const struct operation_case *measure_case,
                   bool is_in_place, uint64_t seed);

/* All of the first GPU's buffers from job->contents, the same at every process. */
void check_fill_with_contents(const struct job *job);

/* Adds up wrong elements and changed guard bytes; reports the first on stderr. To be called after
 * check_prepare and one run. */
void check_compare(const struct job *job, const struct operation_case *measure_case,
                   bool is_in_place, uint64_t *wrong, uint64_t *out_of_bounds);

#endif
