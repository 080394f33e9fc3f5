/* SPDX-License-Identifier: Apache-2.0 */
/* launch: the kernels that nvcc's code registers, and their launch on a stream.
 * Owns: the table of kernels, never freed.  Threads: any.  Blocks: never.
 * Fails: with a CUDA error code; a kernel that nobody emulates becomes a device fault. */
#ifndef FAKE_CUDA_LAUNCH_H
#define FAKE_CUDA_LAUNCH_H

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/op.h"

struct kernel {
  const void *host_function;
  char *name;
  struct kernel *next;
};

#endif
