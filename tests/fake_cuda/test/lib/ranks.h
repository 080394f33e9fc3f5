/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: a process per rank, a barrier between them, and their common result.
 * Owns: the processes.  Threads: one per process.  Blocks: at the barrier and until all have ended.
 * Fails: the first rank that fails ends the others. */
#ifndef FAKE_CUDA_TEST_RANKS_H
#define FAKE_CUDA_TEST_RANKS_H

#include <nccl.h>
#include <stdio.h>
#include <unistd.h>

/* Ends the process with a message if a CUDA or NCCL call does not succeed. */
#define CHECK(call)                                                                                \
  do {                                                                                             \
    int result_ = (int)(call);                                                                     \
    if (result_) {                                                                                 \
      printf("%s:%d %s -> %d (%s)\n", __FILE__, __LINE__, #call, result_, ncclGetLastError(NULL)); \
      fflush(stdout);                                                                              \
      _exit(3);                                                                                    \
    }                                                                                              \
  } while (0)

/* Forks n processes that call run(rank, arg); returns the number of ranks that failed. */
int ranks_run(int n, int (*run)(int rank, void *arg), void *arg);
void ranks_barrier(void);
/* Adds to the count of wrong values of all ranks. */
void ranks_add_wrong(long count);
long ranks_wrong(void);
/* The unique id: made by rank 0, then seen by every rank. */
ncclUniqueId ranks_unique_id(int rank);

#endif
