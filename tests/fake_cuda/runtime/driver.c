/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: contexts, errors, virtual memory management. cudaGetDriverEntryPoint gives these
 * functions and those of other files; a program that links with libcuda.so.1, which is another name
 * of the runtime's file, finds them by name. */
#include <dlfcn.h>
#include <sys/mman.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/memory.h"

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
  if (device < 0 || device >= device_count)
    return CUDA_ERROR_INVALID_DEVICE;
  contexts[device].device = device;
  device_set_current(device);
  *context = &contexts[device];
  return CUDA_SUCCESS;
}

SUCCEEDS(cuCtxDestroy)

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

/* ---- virtual memory management: where a GPU has it, NCCL connects at the first collective, not at
 * init. The pages are those of the reserved addresses, and a handle only says whose memory it is,
 * as its device plus 1: nothing is mapped twice, and nothing by another process. ---- */

#define GRANULARITY 4096

EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                              int option) {
  *granularity = GRANULARITY;
  return CUDA_SUCCESS;
}

/* Not for host memory: NCCL then shares files in /dev/shm between GPUs of a host. */
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *prop, unsigned long long flags) {
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  *handle = (CUmemGenericAllocationHandle)prop->location.id + 1;
  return CUDA_SUCCESS;
}

SUCCEEDS(cuMemRelease)

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                    CUdeviceptr hint, unsigned long long flags) {
  if (alignment > GRANULARITY)
    return CUDA_ERROR_NOT_SUPPORTED;
  int mode = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, mode, -1, 0);
  if (pages == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *ptr = (CUdeviceptr)pages;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  munmap((void *)ptr, size);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags) {
  memory_add((struct memory){ ptr, size, MEM_DEVICE, (int)handle - 1, NULL });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  struct memory m;
  return memory_take((void *)ptr, MEM_DEVICE, &m) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SUCCEEDS(cuMemSetAccess)

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *ptr) {
  struct memory m;
  if (!memory_find(ptr, &m))
    return CUDA_ERROR_INVALID_VALUE;
  *handle = (CUmemGenericAllocationHandle)m.device + 1;
  return CUDA_SUCCESS;
}

/* Of this library, by the name that it exports. */
EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
                                           enum cudaDriverEntryPointQueryResult *status) {
  void *library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
  *fn = library ? dlsym(library, symbol) : NULL;
  if (library)
    dlclose(library);
  if (!*fn)
    LOG(LOG_INFO, "driver function %s is not emulated", symbol);
  if (status)
    *status = *fn ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *fn || status ? cudaSuccess : error_set(cudaErrorSymbolNotFound);
}
