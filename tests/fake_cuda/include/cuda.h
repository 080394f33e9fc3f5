/* SPDX-License-Identifier: Apache-2.0 */
/* The subset of the public CUDA driver API that this emulation hands out through
 * cudaGetDriverEntryPoint. Written for this project from the public API documentation. */
#ifndef FAKE_CUDA_CUDA_H
#define FAKE_CUDA_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_SUPPORTED = 801
};

typedef int CUdevice;
typedef uintptr_t CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum { CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9 };
enum { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum { CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12 };

#define CU_LAUNCH_PARAM_END ((void *)0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x02)

/* Its first members. */
typedef struct {
  int type;
  int requestedHandleTypes;
  struct {
    int type;
    int id;
  } location;
} CUmemAllocationProp;

typedef struct {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      CUevent event;
      int flags;
    } launchCompletionEvent;
  } value;
} CUlaunchAttribute;

typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;

#endif
