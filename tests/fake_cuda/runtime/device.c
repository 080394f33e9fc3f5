/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, their attributes, errors and versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/runtime.h"

#define DRIVER_VERSION 12080
#define SHARED_MEMORY_OPTIN (227 << 10)

int device_count = 1;
struct device devices[MAX_DEVICES];

static int cc_major = 8, cc_minor = 0;
static int first_device;
static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;
static int fault;

bool env_flag(const char *name) {
  const char *value = getenv(name);
  return value && *value && strcmp(value, "0");
}

/* Sets a device's PCI address from text; false if it is not of the form dddd:bb:ss. */
static bool set_bus_id(struct device *device, const char *text) {
  unsigned domain, bus, slot;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
    return false;
  device->domain = domain & 0xffff;
  device->bus = bus & 0xff;
  device->slot = slot & 0x1f;
  snprintf(device->busId, sizeof device->busId, "%04x:%02x:%02x.0", device->domain, device->bus,
           device->slot);
  return true;
}

/* Reads FAKE_CUDA_BUS_IDS, a comma separated list of PCI addresses. */
static void apply_bus_ids(const char *list) {
  char *copy = strdup(list);
  char *state = NULL;
  int i = 0;
  for (char *t = strtok_r(copy, ",", &state); t && i < device_count;
       t = strtok_r(NULL, ",", &state))
    set_bus_id(&devices[i++], t);
  free(copy);
}

__attribute__((constructor)) static void device_init(void) {
  const char *value;
  if ((value = getenv("FAKE_CUDA_GPUS")))
    device_count = atoi(value);
  if (device_count > MAX_DEVICES)
    device_count = MAX_DEVICES;
  if ((value = getenv("FAKE_CUDA_FIRST_GPU")))
    first_device = atoi(value);
  if ((value = getenv("FAKE_CUDA_CC"))) {
    cc_major = atoi(value) / 10;
    cc_minor = atoi(value) % 10;
  }
  for (int i = 0; i < device_count; i++) {
    char text[32];
    snprintf(text, sizeof text, "0:%x:0", 0x10 + first_device + i);
    set_bus_id(&devices[i], text);
  }
  if ((value = getenv("FAKE_CUDA_BUS_IDS")))
    apply_bus_ids(value);
}

int device_current(void) {
  return current_device;
}

void device_set_current(int device) {
  current_device = device;
}

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

static bool valid(int device) {
  return device >= 0 && device < device_count;
}

cudaError_t device_attribute(int *value, int attr, int device) {
  if (!valid(device))
    return error_set(cudaErrorInvalidDevice);
  const struct device *d = &devices[device];
  switch (attr) {
  case cudaDevAttrMaxThreadsPerBlock:
  case cudaDevAttrMaxBlockDimX:
  case cudaDevAttrMaxBlockDimY:
    *value = 1024;
    break;
  case cudaDevAttrMaxBlockDimZ:
    *value = 64;
    break;
  case cudaDevAttrMaxGridDimX:
  case cudaDevAttrMaxPitch:
    *value = 2147483647;
    break;
  case cudaDevAttrMaxGridDimY:
  case cudaDevAttrMaxGridDimZ:
    *value = 65535;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = 48 << 10;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = SHARED_MEMORY_OPTIN;
    break;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    *value = SHARED_MEMORY_OPTIN + 1024;
    break;
  case cudaDevAttrTotalConstantMemory:
  case cudaDevAttrMaxRegistersPerBlock:
  case cudaDevAttrMaxRegistersPerMultiprocessor:
    *value = 65536;
    break;
  case cudaDevAttrWarpSize:
  case cudaDevAttrMaxBlocksPerMultiprocessor:
    *value = 32;
    break;
  case cudaDevAttrClockRate:
  case cudaDevAttrMemoryClockRate:
    *value = 1500000;
    break;
  case cudaDevAttrGlobalMemoryBusWidth:
    *value = 5120;
    break;
  case cudaDevAttrL2CacheSize:
    *value = 40 << 20;
    break;
  case cudaDevAttrTextureAlignment:
    *value = 512;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = 108;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *value = 2048;
    break;
  case cudaDevAttrAsyncEngineCount:
    *value = 2;
    break;
  case cudaDevAttrGpuOverlap:
  case cudaDevAttrCanMapHostMemory:
  case cudaDevAttrConcurrentKernels:
  case cudaDevAttrUnifiedAddressing:
  case cudaDevAttrStreamPrioritiesSupported:
  case cudaDevAttrManagedMemory:
  case cudaDevAttrConcurrentManagedAccess:
  case cudaDevAttrComputePreemptionSupported:
  case cudaDevAttrCanUseHostPointerForRegisteredMem:
  case cudaDevAttrCooperativeLaunch:
  case cudaDevAttrHostRegisterSupported:
  case cudaDevAttrMemoryPoolsSupported:
  case cudaDevAttrMemoryPoolSupportedHandleTypes:
  case cudaDevAttrGPUDirectRDMASupported:
  case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    *value = 1;
    break;
  case cudaDevAttrGPUDirectRDMAWritesOrdering:
    *value = 200; /* all devices */
    break;
  case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    *value = env_flag("FAKE_CUDA_DMABUF");
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = cc_major;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *value = cc_minor;
    break;
  case cudaDevAttrClusterLaunch:
    *value = cc_major >= 9;
    break;
  case cudaDevAttrPciBusId:
    *value = d->bus;
    break;
  case cudaDevAttrPciDeviceId:
    *value = d->slot;
    break;
  case cudaDevAttrPciDomainId:
    *value = d->domain;
    break;
  default: /* includes HOST_NUMA_ID and everything that is not supported */
    *value = 0;
  }
  LOG(LOG_TRACE, "device attribute %d = %d", attr, *value);
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  return device_attribute(value, attr, device);
}

EXPORT cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device) {
  _Static_assert(sizeof *prop == 1032, "CUDA 12 layout");
  if (!valid(device))
    return error_set(cudaErrorInvalidDevice);
  const struct device *d = &devices[device];
  memset(prop, 0, sizeof *prop);
  snprintf(prop->name, sizeof prop->name, "stratus emulated GPU %d", device);
  memcpy(prop->uuid.bytes, "SEGP", 4);
  gethostname(prop->uuid.bytes + 4, 8);
  prop->uuid.bytes[15] = (char)(first_device + device);
  prop->totalGlobalMem = DEVICE_MEMORY_BYTES;
  prop->sharedMemPerBlock = 48 << 10;
  prop->sharedMemPerBlockOptin = SHARED_MEMORY_OPTIN;
  prop->sharedMemPerMultiprocessor = SHARED_MEMORY_OPTIN + 1024;
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
  prop->major = cc_major;
  prop->minor = cc_minor;
  prop->multiProcessorCount = 108;
  prop->canMapHostMemory = 1;
  prop->concurrentKernels = 1;
  prop->pciBusID = d->bus;
  prop->pciDeviceID = d->slot;
  prop->pciDomainID = d->domain;
  prop->asyncEngineCount = 2;
  prop->unifiedAddressing = 1;
  prop->maxThreadsPerMultiProcessor = 2048;
  prop->maxBlocksPerMultiProcessor = 32;
  prop->managedMemory = 1;
  prop->memoryPoolsSupported = 1;
  prop->gpuDirectRDMASupported = 1;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  const char *value = getenv("FAKE_CUDA_DRIVER_VERSION");
  *version = value ? atoi(value) : DRIVER_VERSION;
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
  if (!valid(device))
    return error_set(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceReset(void) {
  return cudaDeviceSynchronize();
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *busId, int len, int device) {
  if (!valid(device))
    return error_set(cudaErrorInvalidDevice);
  snprintf(busId, len, "%s", devices[device].busId);
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *busId) {
  for (int i = 0; i < device_count; i++) {
    if (!strcasecmp(busId, devices[i].busId)) {
      *device = i;
      return cudaSuccess;
    }
  }
  return error_set(cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  (void)flags;
  return valid(peer) ? cudaSuccess : error_set(cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDeviceSetLimit(int limit, size_t value) {
  (void)limit;
  (void)value;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, int limit) {
  (void)limit;
  *value = 1024;
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

EXPORT const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "cudaSuccess";
  case cudaErrorInvalidValue:
    return "cudaErrorInvalidValue";
  case cudaErrorMemoryAllocation:
    return "cudaErrorMemoryAllocation";
  case cudaErrorInvalidDeviceFunction:
    return "cudaErrorInvalidDeviceFunction";
  case cudaErrorNoDevice:
    return "cudaErrorNoDevice";
  case cudaErrorInvalidDevice:
    return "cudaErrorInvalidDevice";
  case cudaErrorInvalidResourceHandle:
    return "cudaErrorInvalidResourceHandle";
  case cudaErrorSymbolNotFound:
    return "cudaErrorSymbolNotFound";
  case cudaErrorNotReady:
    return "cudaErrorNotReady";
  case cudaErrorPeerAccessAlreadyEnabled:
    return "cudaErrorPeerAccessAlreadyEnabled";
  case cudaErrorHostMemoryAlreadyRegistered:
    return "cudaErrorHostMemoryAlreadyRegistered";
  case cudaErrorHostMemoryNotRegistered:
    return "cudaErrorHostMemoryNotRegistered";
  case cudaErrorLaunchFailure:
    return "cudaErrorLaunchFailure";
  case cudaErrorNotSupported:
    return "cudaErrorNotSupported";
  default:
    return "cudaErrorUnknown";
  }
}

EXPORT const char *cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}
