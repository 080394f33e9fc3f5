/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says about itself: those of an A100, as far as NCCL or a benchmark asks. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/log.h"

/* Attributes that are the same for every device; everything else but those of own_attribute is 0,
 * which means "not supported", and is right for HOST_NUMA_ID. */
static const struct {
  int attribute, value;
} attributes[] = {
  { cudaDevAttrMaxThreadsPerBlock, 1024 },
  { cudaDevAttrMaxBlockDimX, 1024 },
  { cudaDevAttrMaxBlockDimY, 1024 },
  { cudaDevAttrMaxBlockDimZ, 64 },
  { cudaDevAttrMaxGridDimX, 2147483647 },
  { cudaDevAttrMaxGridDimY, 65535 },
  { cudaDevAttrMaxGridDimZ, 65535 },
  { cudaDevAttrMaxPitch, 2147483647 },
  { cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10 },
  { cudaDevAttrMaxSharedMemoryPerBlockOptin, SHARED_MEMORY_OPTIN_BYTES },
  { cudaDevAttrMaxSharedMemoryPerMultiprocessor, SHARED_MEMORY_OPTIN_BYTES + 1024 },
  { cudaDevAttrTotalConstantMemory, 65536 },
  { cudaDevAttrMaxRegistersPerBlock, 65536 },
  { cudaDevAttrMaxRegistersPerMultiprocessor, 65536 },
  { cudaDevAttrWarpSize, 32 },
  { cudaDevAttrMaxBlocksPerMultiprocessor, 32 },
  { cudaDevAttrClockRate, 1500000 },
  { cudaDevAttrMemoryClockRate, 1500000 },
  { cudaDevAttrGlobalMemoryBusWidth, 5120 },
  { cudaDevAttrL2CacheSize, 40 << 20 },
  { cudaDevAttrTextureAlignment, 512 },
  { cudaDevAttrMultiProcessorCount, 108 },
  { cudaDevAttrMaxThreadsPerMultiProcessor, 2048 },
  { cudaDevAttrAsyncEngineCount, 2 },
  { cudaDevAttrGpuOverlap, 1 },
  { cudaDevAttrCanMapHostMemory, 1 },
  { cudaDevAttrConcurrentKernels, 1 },
  { cudaDevAttrUnifiedAddressing, 1 },
  { cudaDevAttrStreamPrioritiesSupported, 1 },
  { cudaDevAttrManagedMemory, 1 },
  { cudaDevAttrConcurrentManagedAccess, 1 },
  { cudaDevAttrComputePreemptionSupported, 1 },
  { cudaDevAttrCanUseHostPointerForRegisteredMem, 1 },
  { cudaDevAttrCooperativeLaunch, 1 },
  { cudaDevAttrHostRegisterSupported, 1 },
  { cudaDevAttrMemoryPoolsSupported, 1 },
  { cudaDevAttrMemoryPoolSupportedHandleTypes, 1 },
  { cudaDevAttrGPUDirectRDMASupported, 1 },
  { cudaDevAttrGPUDirectRDMAFlushWritesOptions, 1 },
  { cudaDevAttrGPUDirectRDMAWritesOrdering, 200 }, /* visible to all devices */
  { CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
  { CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1 },
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
      if (attributes[i].attribute == attribute)
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
  const struct device *d = &devices[device];
  memset(prop, 0, sizeof *prop);
  snprintf(prop->name, sizeof prop->name, "stratus emulated GPU %d", device);
  memcpy(prop->uuid.bytes, "SEGP", 4);
  gethostname(prop->uuid.bytes + 4, 8);
  prop->uuid.bytes[15] = (char)device;
  prop->totalGlobalMem = DEVICE_MEMORY_BYTES;
  prop->sharedMemPerBlock = 48 << 10;
  prop->sharedMemPerBlockOptin = SHARED_MEMORY_OPTIN_BYTES;
  prop->sharedMemPerMultiprocessor = SHARED_MEMORY_OPTIN_BYTES + 1024;
  prop->regsPerBlock = 65536;
  prop->regsPerMultiprocessor = 65536;
  prop->warpSize = 32;
  prop->memPitch = 2147483647;
  prop->maxThreadsPerBlock = 1024;
  prop->maxThreadsDim[0] = 1024;
  prop->maxThreadsDim[1] = 1024;
  prop->maxThreadsDim[2] = 64;
  prop->maxGridSize[0] = 2147483647;
  prop->maxGridSize[1] = 65535;
  prop->maxGridSize[2] = 65535;
  prop->clockRate = 1500000;
  prop->totalConstMem = 65536;
  prop->major = device_cc / 10;
  prop->minor = device_cc % 10;
  prop->multiProcessorCount = 108;
  prop->canMapHostMemory = 1;
  prop->concurrentKernels = 1;
  prop->pciBusID = d->bus;
  prop->asyncEngineCount = 2;
  prop->unifiedAddressing = 1;
  prop->maxThreadsPerMultiProcessor = 2048;
  prop->maxBlocksPerMultiProcessor = 32;
  prop->managedMemory = 1;
  prop->memoryPoolsSupported = 1;
  prop->gpuDirectRDMASupported = 1;
  return cudaSuccess;
}
