/* SPDX-License-Identifier: Apache-2.0 */
/* kernel: what the runtime asks of the emulated NCCL kernels.
 * Owns: the facts and the function table of the one NCCL library in the process.
 * Threads: a stream's thread runs a kernel, with helpers that it joins.
 * Blocks: until the kernel has finished, as a GPU would.  Fails: -1 if it is not emulated. */
#ifndef FAKE_CUDA_NCCL_KERNEL_H
#define FAKE_CUDA_NCCL_KERNEL_H

#include "tests/fake_cuda/runtime/launch.h"

int nccl_kernel_run(const struct kernel *kernel, unsigned grid, const void *args);
/* Sizes of the kernel's parameters, in order, terminated by 0; NULL for an unknown kernel. */
const size_t *nccl_kernel_params(const char *name);

#endif
