/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says about itself: those of an A100, as far as NCCL or a benchmark asks. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/device.h"

/* Attributes, and where the properties have them; everything else is 0, which means "not
 * supported", and is right for HOST_NUMA_ID. */
#define ONLY(number, value)                                                                        \
  { number, value, 0 }
#define BOTH(number, value, member)                                                                \
  { number, value, offsetof(struct cudaDeviceProp, member) }
static const struct {
  int number, value;
  size_t place; /* 0: in none */
} attributes[] = {
  BOTH(1, 1024, maxThreadsPerBlock),
  BOTH(2, 1024, maxThreadsDim[0]),
  BOTH(3, 1024, maxThreadsDim[1]),
  BOTH(4, 64, maxThreadsDim[2]),
  BOTH(5, 2147483647, maxGridSize[0]),
  BOTH(6, 65535, maxGridSize[1]),
  BOTH(7, 65535, maxGridSize[2]),
  BOTH(8, 48 << 10, sharedMemPerBlock),
  BOTH(9, 65536, totalConstMem),
  BOTH(10, 32, warpSize),
  BOTH(11, 2147483647, memPitch),
  BOTH(12, 65536, regsPerBlock),
  BOTH(13, 1500000, clockRate),
  ONLY(14, 512), /* texture alignment */
  ONLY(15, 1),   /* copies beside kernels */
  BOTH(16, 108, multiProcessorCount),
  BOTH(19, 1, canMapHostMemory),
  BOTH(31, 1, concurrentKernels),
  BOTH(cudaDevAttrPciBusId, 0, pciBusID), /* own_attribute */
  ONLY(36, 1500000),                      /* memory's clock rate */
  ONLY(37, 5120),                         /* memory's bus width */
  ONLY(38, 40 << 20),                     /* L2 cache */
  BOTH(cudaDevAttrMaxThreadsPerMultiProcessor, 2048, maxThreadsPerMultiProcessor),
  BOTH(40, 2, asyncEngineCount),
  BOTH(41, 1, unifiedAddressing),
  BOTH(cudaDevAttrComputeCapabilityMajor, 0, major),
  BOTH(cudaDevAttrComputeCapabilityMinor, 0, minor),
  ONLY(78, 1), /* stream priorities */
  BOTH(81, SHARED_MEMORY_OPTIN_BYTES + 1024, sharedMemPerMultiprocessor),
  BOTH(82, 65536, regsPerMultiprocessor),
  BOTH(83, 1, managedMemory),
  ONLY(89, 1), /* concurrent managed access */
  ONLY(90, 1), /* preemption */
  ONLY(91, 1), /* host pointers for registered memory */
  ONLY(95, 1), /* cooperative launch */
  BOTH(97, SHARED_MEMORY_OPTIN_BYTES, sharedMemPerBlockOptin),
  ONLY(99, 1),  /* cudaHostRegister */
  ONLY(102, 1), /* virtual memory management */
  BOTH(cudaDevAttrMaxBlocksPerMultiprocessor, 32, maxBlocksPerMultiProcessor),
  ONLY(110, 1), /* GPUDirect RDMA with it */
  BOTH(115, 1, memoryPoolsSupported),
  BOTH(116, 1, gpuDirectRDMASupported),
  ONLY(117, 1),   /* GPUDirect RDMA flushes */
  ONLY(118, 200), /* its writes are visible to all devices */
  ONLY(119, 1),   /* handles of memory pools */
};

/* Attributes that depend on the device or on FAKE_CUDA_*; false if this is not one of them. */
static bool own_attribute(int *value, int attribute, const struct device *d) {
  switch (attribute) {
  case cudaDevAttrComputeCapabilityMajor:
    *value = device_cc / 10;
    return true;
  case cudaDevAttrComputeCapabilityMinor:
    *value = device_cc % 10;
    return true;
  case cudaDevAttrClusterLaunch:
    *value = device_cc >= 90;
    return true;
  case cudaDevAttrPciBusId:
    *value = (int)d->bus;
    return true;
  default:
    return false;
  }
}

cudaError_t device_attribute(int *value, int attribute, int device) {
  if (!device_is_valid(device))
    return error_set(cudaErrorInvalidDevice);
  *value = 0;
  if (!own_attribute(value, attribute, &devices[device])) {
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
      if (attributes[i].number == attribute)
        *value = attributes[i].value;
    }
  }
  LOG(LOG_TRACE, "device attribute %d = %d", attribute, *value);
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  return device_attribute(value, (int)attr, device);
}

EXPORT cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device) {
  _Static_assert(sizeof *prop == 1032, "CUDA 12 layout");
  if (!device_is_valid(device))
    return error_set(cudaErrorInvalidDevice);
  memset(prop, 0, sizeof *prop);
  snprintf(prop->name, sizeof prop->name, "stratus emulated GPU %d", device);
  memcpy(prop->uuid.bytes, "SEGP", 4);
  gethostname(prop->uuid.bytes + 4, 8);
  prop->uuid.bytes[15] = (char)device;
  prop->totalGlobalMem = DEVICE_MEMORY_BYTES;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    int value;
    device_attribute(&value, attributes[i].number, device);
    if (attributes[i].place) /* of a size_t its lower half */
      memcpy((char *)prop + attributes[i].place, &value, sizeof value);
  }
  return cudaSuccess;
}
