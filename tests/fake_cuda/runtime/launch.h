/* SPDX-License-Identifier: Apache-2.0 */
/* launch: the kernels that nvcc's code registers, and their launch on a stream.
 * Owns: the table of kernels, never freed.  Threads: any.  Blocks: never.
 * Fails: with a CUDA error code; a kernel that nobody emulates becomes a device fault. */
#ifndef FAKE_CUDA_LAUNCH_H
#define FAKE_CUDA_LAUNCH_H

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/stream.h"

struct kernel {
  const void *host_function;
  char *name;
  struct kernel *next;
};

/* ---- NCCL's kernels (nccl/kernel.c) ----
 *
 * A stream's thread runs a kernel, with helpers that it joins. Blocks until it has finished, as a
 * GPU would. False, after an error message, if the release or what the kernel was asked to do is
 * not emulated. */
bool nccl_kernel_run(const struct kernel *kernel, unsigned grid, const void *args);
bool nccl_kernel_is(const char *name);

#endif
