/* SPDX-License-Identifier: Apache-2.0 */
/* See nccl/own.h. */
#include "tests/fake_cuda/nccl/own.h"

/* Weak: a release may lack it, and so do transports alone (as_plugin.c), which need none. */
#define OF_NCCL(name) __asm__(name) __attribute__((weak, visibility("hidden")))
extern nccl_pat_next reducescatter OF_NCCL("_ZN14PatRSAlgorithmIcE9getNextOpEP11ncclPatStep");
extern nccl_pat_next allgather OF_NCCL("_ZN14PatAGAlgorithmIcE9getNextOpEP11ncclPatStep");
extern const int row_to_id[] OF_NCCL("ncclDevFuncRowToId");

__attribute__((visibility("default")))
const struct nccl_own fake_cuda_nccl_own = { reducescatter, allgather, row_to_id };
