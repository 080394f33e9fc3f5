/* SPDX-License-Identifier: Apache-2.0 */
/* The current device, peers, and versions. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

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
  (void)device;
  (void)peer;
  *can = 0;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSetLimit(int limit, size_t value) {
  (void)limit;
  (void)value;
  return cudaSuccess;
}
