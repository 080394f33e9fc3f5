/* SPDX-License-Identifier: Apache-2.0 */
/* No stream is ever captured. A plugin sees of a CUDA graph what it sees of any launch: the calls
 * of NCCL's proxy; so graphs are not emulated. What NCCL and PyTorch link with but do not call as
 * long as no capture begins fails here, whatever its arguments. */
#include "tests/fake_cuda/runtime/device.h"

static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  enum cudaStreamCaptureMode previous = thread_mode;
  thread_mode = *mode;
  *mode = previous;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                         enum cudaStreamCaptureStatus *status) {
  (void)stream;
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
