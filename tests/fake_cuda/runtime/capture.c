/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture and graphs are not emulated: a stream never reports that it is capturing, and the
 * graph calls that NCCL would make during a capture fail. */
#include "tests/fake_cuda/runtime/runtime.h"

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                         enum cudaStreamCaptureStatus *status) {
  (void)stream;
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                               enum cudaStreamCaptureStatus *status,
                                               unsigned long long *id, cudaGraph_t *graph,
                                               const cudaGraphNode_t **dependencies,
                                               size_t *count) {
  (void)stream;
  *status = cudaStreamCaptureStatusNone;
  if (id)
    *id = 0;
  if (graph)
    *graph = NULL;
  if (dependencies)
    *dependencies = NULL;
  if (count)
    *count = 0;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream,
                                               enum cudaStreamCaptureStatus *status,
                                               unsigned long long *id, cudaGraph_t *graph,
                                               const cudaGraphNode_t **dependencies,
                                               const void **edges, size_t *count) {
  if (edges)
    *edges = NULL;
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  static _Thread_local enum cudaStreamCaptureMode current;
  enum cudaStreamCaptureMode previous = current;
  current = *mode;
  *mode = previous;
  return cudaSuccess;
}

/* The arguments do not matter because the calls always fail. */
#define UNSUPPORTED(name)                                                                          \
  EXPORT cudaError_t name(void) {                                                                  \
    LOG(LOG_ERROR, #name " is not emulated");                                                      \
    return error_set(cudaErrorNotSupported);                                                       \
  }

UNSUPPORTED(cudaStreamUpdateCaptureDependencies)
UNSUPPORTED(cudaStreamUpdateCaptureDependencies_v2)
UNSUPPORTED(cudaGraphAddDependencies)
UNSUPPORTED(cudaGraphAddDependencies_v2)
UNSUPPORTED(cudaGraphAddEventRecordNode)
UNSUPPORTED(cudaGraphAddEventWaitNode)
UNSUPPORTED(cudaGraphAddHostNode)
UNSUPPORTED(cudaGraphAddKernelNode)
UNSUPPORTED(cudaGraphRetainUserObject)
UNSUPPORTED(cudaUserObjectCreate)
