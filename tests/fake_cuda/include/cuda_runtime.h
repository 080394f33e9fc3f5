/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the public CUDA runtime API, and those of its functions that this emulation's files call
 * of each other; all are found in the runtime's files by EXPORT.
 *
 * Written for this project from the public API documentation; it is not a copy of NVIDIA's header.
 * Structure layouts follow the CUDA 12 ABI, because Debian builds NCCL with CUDA 12.
 * A program that includes NVIDIA's own CUDA 12 headers instead is binary compatible. */
#ifndef FAKE_CUDA_CUDA_RUNTIME_H
#define FAKE_CUDA_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define CUDART_VERSION 12040

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef void (*cudaHostFn_t)(void *userData);

typedef struct {
  unsigned x, y, z;
} dim3;

typedef struct {
  char bytes[16];
} cudaUUID_t;

typedef struct cudaLaunchConfig_st {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  void *attrs;
  unsigned numAttrs;
} cudaLaunchConfig_t;

#define cudaStreamPerThread ((cudaStream_t)0x2) /* 0x1: the legacy one */

enum { cudaStreamDefault = 0 };
enum { cudaEventDefault = 0 };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2
};

struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
  void *devicePointer;
  void *hostPointer;
};

struct cudaFuncAttributes {
  size_t sharedSizeBytes;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
  int clusterDimMustBeSet;
  int requiredClusterWidth;
  int requiredClusterHeight;
  int requiredClusterDepth;
  int clusterSchedulingPolicyPreference;
  int nonPortableClusterSizeAllowed;
  int reserved[16];
};

enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0 };

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1
};

/* Those that are more than a row of device_properties.c; numbers are shared with the driver API
 * (CUdevice_attribute). */
enum cudaDeviceAttr {
  cudaDevAttrPciBusId = 33,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxBlocksPerMultiprocessor = 106,
  cudaDevAttrClusterLaunch = 120
};

/* CUDA 12 layout, 1032 bytes. What the emulation leaves at zero is collapsed into arrays. */
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  char unused_0[16];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;
  size_t totalConstMem;
  int major;
  int minor;
  size_t unused_1[2];
  int unused_2;
  int multiProcessorCount;
  int unused_3[2];
  int canMapHostMemory;
  int unused_4[41];
  size_t unused_5;
  int concurrentKernels;
  int unused_6;
  int pciBusID;
  int unused_7[3];
  int asyncEngineCount;
  int unifiedAddressing;
  int unused_8[4];
  int maxThreadsPerMultiProcessor;
  int unused_9[3];
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int unused_10[9];
  size_t sharedMemPerBlockOptin;
  int unused_11[2];
  int maxBlocksPerMultiProcessor;
  int unused_12;
  size_t unused_13;
  int unused_14[4];
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  int unused_15[70];
};

const char *cudaGetErrorName(cudaError_t error);

cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const void *props);
cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t n, cudaMemPool_t pool, cudaStream_t stream);

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *dst, int value, size_t size, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream);

#endif
