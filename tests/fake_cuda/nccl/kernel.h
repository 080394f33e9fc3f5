/* SPDX-License-Identifier: Apache-2.0 */
/* kernel: what the runtime asks of the emulated NCCL kernels.
 * Owns: the facts and the function table of the one NCCL library in the process.
 * Threads: a stream's thread runs a kernel, with helpers that it joins.
 * Blocks: until the kernel has finished, as a GPU would.  Fails: false, after an error message, if
 * the release or what the kernel was asked to do is not emulated. */
#ifndef FAKE_CUDA_NCCL_KERNEL_H
#define FAKE_CUDA_NCCL_KERNEL_H

#include "tests/fake_cuda/runtime/launch.h"

bool nccl_kernel_run(const struct kernel *kernel, unsigned grid, const void *args);
/* Sizes of a kernel's parameters, in order, terminated by 0; NULL if it is not one of NCCL's. */
const size_t *nccl_kernel_params(const char *name);

#endif
