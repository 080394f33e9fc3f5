/* SPDX-License-Identifier: Apache-2.0 */
/* driver: driver API functions, which cudaGetDriverEntryPoint returns and libcuda.so.1, another
 * name of the runtime's file, exports. Owns: nothing.  Threads: any.  Blocks: never. Fails: with a
 * CUresult. */
#ifndef FAKE_CUDA_DRIVER_H
#define FAKE_CUDA_DRIVER_H

#include "cuda.h"

#pragma GCC visibility push(default)
/* memory.c */
CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr);

/* launch.c */
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **params, void **extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra);
#pragma GCC visibility pop

#endif
