/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes, the last error of a thread, and device faults. */
#include "tests/fake_cuda/runtime/device.h"

static _Thread_local cudaError_t last_error;
static int fault;

cudaError_t error_set(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady)
    last_error = error;
  return error;
}

void device_set_fault(void) {
  __atomic_store_n(&fault, 1, __ATOMIC_RELEASE);
}

cudaError_t device_fault(void) {
  if (__atomic_load_n(&fault, __ATOMIC_ACQUIRE))
    return error_set(cudaErrorLaunchFailure);
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetLastError(void) {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

EXPORT cudaError_t cudaPeekAtLastError(void) {
  return last_error;
}

#define NAMED(code)                                                                                \
  { code, #code }
static const struct {
  cudaError_t code;
  const char *name;
} names[] = {
  NAMED(cudaSuccess),
  NAMED(cudaErrorInvalidValue),
  NAMED(cudaErrorMemoryAllocation),
  NAMED(cudaErrorInvalidDeviceFunction),
  NAMED(cudaErrorNoDevice),
  NAMED(cudaErrorInvalidDevice),
  NAMED(cudaErrorInvalidResourceHandle),
  NAMED(cudaErrorSymbolNotFound),
  NAMED(cudaErrorNotReady),
  NAMED(cudaErrorPeerAccessAlreadyEnabled),
  NAMED(cudaErrorHostMemoryAlreadyRegistered),
  NAMED(cudaErrorHostMemoryNotRegistered),
  NAMED(cudaErrorLaunchFailure),
  NAMED(cudaErrorNotSupported),
};

EXPORT const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].code == error)
      return names[i].name;
  }
  return "cudaErrorUnknown";
}

EXPORT const char *cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}
