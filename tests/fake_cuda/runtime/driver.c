/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API entry points: contexts, errors, and the table behind cudaGetDriverEntryPoint. A
 * program that links with libcuda.so.1 finds them by name. */
#include <string.h>

#include "tests/fake_cuda/runtime/driver.h"
#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/log.h"

/* A context is just a device number here; there is one per device. */
struct CUctx_st {
  int device;
};
static struct CUctx_st contexts[MAX_DEVICES];

EXPORT CUresult cuGetErrorName(CUresult error, const char **text) {
  *text = cudaGetErrorName((cudaError_t)error);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
  return cuGetErrorName(error, text);
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= device_count)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  return (CUresult)device_attribute(value, attribute, device);
}

/* The ABI-11040 form of cuCtxCreate, which is what CUDA 12 programs ask for. */
EXPORT CUresult cuCtxCreate(CUcontext *context, void *affinity, int count, unsigned flags,
                            CUdevice device) {
  (void)affinity;
  (void)count;
  (void)flags;
  if (device < 0 || device >= device_count)
    return CUDA_ERROR_INVALID_DEVICE;
  contexts[device].device = device;
  device_set_current(device);
  *context = &contexts[device];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy(CUcontext context) {
  (void)context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  int device = device_current();
  contexts[device].device = device;
  *context = &contexts[device];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  if (context)
    device_set_current(context->device);
  return CUDA_SUCCESS;
}

/* The context of a device is always there. */
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active) {
  if (device < 0 || device >= device_count)
    return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *is_active = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  *device = device_current();
  return CUDA_SUCCESS;
}

#define ENTRY(name)                                                                                \
  { #name, (void *)name }
static const struct {
  const char *name;
  void *function;
} entries[] = {
  ENTRY(cuGetErrorName),        ENTRY(cuGetErrorString), ENTRY(cuDeviceGet),
  ENTRY(cuDeviceGetAttribute),  ENTRY(cuCtxCreate),      ENTRY(cuCtxDestroy),
  ENTRY(cuCtxGetCurrent),       ENTRY(cuCtxSetCurrent),  ENTRY(cuCtxGetDevice),
  ENTRY(cuLaunchKernel),        ENTRY(cuLaunchKernelEx), ENTRY(cuMemGetAddressRange),
  ENTRY(cuPointerGetAttribute),
};

void *driver_entry(const char *symbol) {
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    if (!strcmp(entries[i].name, symbol))
      return entries[i].function;
  }
  return NULL;
}

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
                                           enum cudaDriverEntryPointQueryResult *status) {
  (void)flags;
  *fn = driver_entry(symbol);
  if (!*fn)
    LOG(LOG_INFO, "driver function %s is not emulated", symbol);
  if (status)
    *status = *fn ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *fn || status ? cudaSuccess : error_set(cudaErrorSymbolNotFound);
}
