/* SPDX-License-Identifier: Apache-2.0 */
/* own: what NCCL's library has beside its kernels and keeps to itself: linked/own.c, which is a
 * part of libnccl.so.2, hands it out. Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot;
 * NULL is what a release has not. */
#ifndef FAKE_CUDA_NCCL_OWN_H
#define FAKE_CUDA_NCCL_OWN_H

/* PatRSAlgorithm::getNextOp or PatAGAlgorithm's (src/include/collectives.h). */
typedef void nccl_pat_next(void *algorithm, void *step);

struct nccl_own {
  nccl_pat_next *pat_reducescatter, *pat_allgather;
  const int *row_to_id; /* ncclDevFuncRowToId (src/include/device.h) */
};

#endif
