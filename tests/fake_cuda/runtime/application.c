/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch calls and NCCL does not: launches by kernel<<<>>>, priorities, pools, the primary
 * context; and what both link with and do not call. */
#include "tests/fake_cuda/runtime/memory.h"
#include "tests/fake_cuda/runtime/stream.h"

/* ---- launches: the caller pushes, the kernel's host stub pops and launches ---- */

struct configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
static _Thread_local struct configuration pushed[8]; /* an argument's expression may launch, too */
static _Thread_local unsigned depth;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                            cudaStream_t stream) {
  if (depth == sizeof pushed / sizeof *pushed)
    return 1;
  pushed[depth++] = (struct configuration){ grid, block, shared, stream };
  return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                              cudaStream_t *stream) {
  if (!depth)
    return error_set(cudaErrorInvalidValue);
  const struct configuration *c = &pushed[--depth];
  *grid = c->grid;
  *block = c->block;
  *shared = c->shared;
  *stream = c->stream;
  return cudaSuccess;
}

EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
                                       void **args) {
  return cudaLaunchKernel(func, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
                          config->stream);
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *func, int threads, size_t shared, unsigned flags) {
  int of_threads, most;
  if (threads <= 0)
    return error_set(cudaErrorInvalidValue);
  device_attribute(&of_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device_current());
  device_attribute(&most, cudaDevAttrMaxBlocksPerMultiprocessor, device_current());
  of_threads /= (int)round_up((size_t)threads, 32);
  int of_shared = shared ? (int)(SHARED_MEMORY_OPTIN_BYTES / shared) : most;
  *blocks = of_threads < most ? of_threads : most;
  if (of_shared < *blocks)
    *blocks = of_shared;
  return cudaSuccess;
}

/* ---- streams ---- */

enum { GREATEST_PRIORITY = -5 }; /* as an A100 says; 0 is the least */

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = GREATEST_PRIORITY;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                                int priority) {
  priority = priority > 0 ? 0 : priority;
  *stream = stream_new(priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority);
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  *priority = stream_priority(stream_resolve(stream));
  return cudaSuccess;
}

/* ---- memory ---- */

EXPORT cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  *total = DEVICE_MEMORY_BYTES;
  *unused = *total - memory_in_use(device_current());
  return cudaSuccess;
}

/* All devices share the process's memory. */
EXPORT cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                       size_t size, cudaStream_t stream) {
  if (!device_is_valid(dst_device) || !device_is_valid(src_device))
    return error_set(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(dst, src, size, cudaMemcpyDeviceToDevice, stream);
}

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  return device_is_valid(device) ? cudaMemPoolCreate(pool, NULL)
                                 : error_set(cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(ptr, size, NULL, stream);
}

/* A pool keeps nothing, and every device reaches it. */
SUCCEEDS(cudaMemPoolTrimTo)
SUCCEEDS(cudaMemPoolSetAccess)

/* ---- profiling ---- */

SUCCEEDS(cudaProfilerStart)
SUCCEEDS(cudaProfilerStop)

/* ---- No stream is ever captured. A plugin sees of a CUDA graph what it sees of any launch: the
 * calls of NCCL's proxy; so graphs are not emulated. What NCCL and PyTorch link with but do not
 * call as long as no capture begins fails here, whatever its arguments. ---- */

static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  enum cudaStreamCaptureMode previous = thread_mode;
  thread_mode = *mode;
  *mode = previous;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                         enum cudaStreamCaptureStatus *status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

/* Of what is not captured only the status is defined, and, of a caller that asks for it, the id. */
EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                               enum cudaStreamCaptureStatus *status,
                                               unsigned long long *id, cudaGraph_t *graph) {
  if (id)
    *id = 0;
  if (graph)
    *graph = NULL;
  return cudaStreamIsCapturing(stream, status);
}

EXPORT cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream,
                                               enum cudaStreamCaptureStatus *status,
                                               unsigned long long *id, cudaGraph_t *graph) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph);
}

#define REFUSED(name)                                                                              \
  EXPORT cudaError_t name(void) {                                                                  \
    return error_set(cudaErrorNotSupported);                                                       \
  }

REFUSED(cudaStreamBeginCapture)
REFUSED(cudaStreamEndCapture)
REFUSED(cudaStreamUpdateCaptureDependencies)
REFUSED(cudaStreamUpdateCaptureDependencies_v2)
REFUSED(cudaUserObjectCreate)
REFUSED(cudaGraphRetainUserObject)
REFUSED(cudaGraphAddKernelNode)
REFUSED(cudaGraphAddHostNode)
REFUSED(cudaGraphAddEventRecordNode)
REFUSED(cudaGraphAddEventWaitNode)
REFUSED(cudaGraphAddDependencies)
REFUSED(cudaGraphAddDependencies_v2)
REFUSED(cudaGraphInstantiate)
REFUSED(cudaGraphInstantiateWithFlags)
REFUSED(cudaGraphLaunch)
REFUSED(cudaGraphGetNodes)
REFUSED(cudaGraphDebugDotPrint)
REFUSED(cudaGraphExecDestroy)
REFUSED(cudaGraphDestroy)
REFUSED(cudaMemPoolGetAttribute)
REFUSED(cudaIpcGetEventHandle)
REFUSED(cudaIpcOpenEventHandle)
REFUSED(cudaIpcGetMemHandle)
REFUSED(cudaIpcOpenMemHandle)
REFUSED(cudaIpcCloseMemHandle)
REFUSED(cudaDeviceEnablePeerAccess)
