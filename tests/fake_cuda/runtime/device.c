/* SPDX-License-Identifier: Apache-2.0 */
/* The current device, peers, versions, error codes, and diagnostics. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/device.h"

#define DRIVER_VERSION 12080

static _Thread_local int current_device;

int device_current(void) {
  return current_device;
}

void device_set_current(int device) {
  current_device = device;
}

bool device_is_valid(int device) {
  return device >= 0 && device < device_count;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  *version = DRIVER_VERSION;
  return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  *count = device_count;
  return device_count ? cudaSuccess : error_set(cudaErrorNoDevice);
}

EXPORT cudaError_t cudaGetDevice(int *device) {
  *device = current_device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) {
  if (!device_is_valid(device))
    return error_set(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int len, int device) {
  if (!device_is_valid(device))
    return error_set(cudaErrorInvalidDevice);
  snprintf(bus_id, len, "%s", devices[device].bus_id);
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id) {
  for (int i = 0; i < device_count; i++) {
    if (!strcasecmp(bus_id, devices[i].bus_id)) {
      *device = i;
      return cudaSuccess;
    }
  }
  return error_set(cudaErrorInvalidDevice);
}

/* NCCL then has shared memory between GPUs of a host: no plugin is asked about these. */
EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = 0;
  return cudaSuccess;
}

SUCCEEDS(cudaDeviceSetLimit)

/* ---- errors ---- */

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

/* ---- diagnostics ---- */

int log_level;

/* Writes one line with a single write so that lines of several processes do not mix. */
void log_print(const char *format, ...) {
  char line[600];
  int used = snprintf(line, sizeof line, "[fake_cuda %d] ", (int)getpid());
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line + used, sizeof line - used - 1, format, args);
  va_end(args);
  used += n;
  if (used > (int)sizeof line - 2)
    used = sizeof line - 2;
  line[used++] = '\n';
  ssize_t ignored = write(STDERR_FILENO, line, used);
  (void)ignored;
}

__attribute__((constructor)) static void log_init(void) {
  const char *level = getenv("FAKE_CUDA_LOG");
  if (level)
    log_level = atoi(level);
}
