/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API virtual memory management (cuMem*) and dma-buf export.
 * A physical allocation handle is a reference counted memfd. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/driver.h"
#include "tests/fake_cuda/runtime/log.h"
#include "tests/fake_cuda/runtime/memory.h"

#define GRANULARITY (2ul << 20)

static struct physical *physical(CUmemGenericAllocationHandle handle) {
  return (struct physical *)(uintptr_t)handle;
}

static struct physical *physical_new(int fd, int device, bool host, size_t size) {
  struct physical *p = malloc(sizeof *p);
  *p = (struct physical){ fd, 1, device, host, size };
  return p;
}

static void physical_retain(struct physical *p) {
  __atomic_add_fetch(&p->references, 1, __ATOMIC_SEQ_CST);
}

static void physical_release(struct physical *p) {
  if (__atomic_sub_fetch(&p->references, 1, __ATOMIC_SEQ_CST) == 0) {
    close(p->fd);
    free(p);
  }
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       int option) {
  (void)prop;
  (void)option;
  *granularity = GRANULARITY;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags) {
  (void)flags;
  if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED; /* no fabric handles */
  int fd = memory_memfd(size);
  if (fd < 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  bool host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  *handle = (uintptr_t)physical_new(fd, prop->location.id, host, size);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  physical_release(physical(handle));
  return CUDA_SUCCESS;
}

/* Reserves address space: maps more than asked for and trims it to the alignment. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  (void)hint;
  (void)flags;
  if (alignment < GRANULARITY)
    alignment = GRANULARITY;
  int mode = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *raw = mmap(NULL, size + alignment, PROT_NONE, mode, -1, 0);
  if (raw == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  char *start = (char *)round_up((uintptr_t)raw, alignment);
  if (start > raw)
    munmap(raw, start - raw);
  if (raw + alignment > start)
    munmap(start + size, raw + alignment - start);
  *ptr = (CUdeviceptr)start;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  munmap((void *)ptr, size);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  (void)flags;
  struct physical *p = physical(handle);
  void *mapped =
      mmap((void *)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->fd, (off_t)offset);
  if (mapped == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  physical_retain(p);
  memory_add((struct memory){ .base = ptr,
                              .size = size,
                              .kind = MEM_VMM,
                              .on_device = !p->is_host,
                              .device = p->is_host ? device_current() : p->device,
                              .fd = -1,
                              .physical = p });
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  struct memory m;
  if (!memory_take((void *)ptr, MEM_VMM, &m))
    return CUDA_ERROR_INVALID_VALUE;
  int mode = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  mmap((void *)ptr, size, PROT_NONE, mode, -1, 0);
  physical_release(m.physical);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
  (void)ptr;
  (void)size;
  (void)desc;
  (void)count;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags) {
  (void)flags;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  int fd = dup(physical(handle)->fd);
  if (fd < 0)
    return CUDA_ERROR_INVALID_VALUE;
  *(int *)shareable = fd;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
                                        int type) {
  struct stat info;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  int fd = dup((int)(intptr_t)os_handle);
  if (fd < 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (fstat(fd, &info)) {
    close(fd);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *handle = (uintptr_t)physical_new(fd, device_current(), false, (size_t)info.st_size);
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *ptr) {
  struct memory m;
  if (!memory_find(ptr, &m) || m.kind != MEM_VMM)
    return CUDA_ERROR_INVALID_VALUE;
  physical_retain(m.physical);
  *handle = (uintptr_t)m.physical;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle) {
  struct physical *p = physical(handle);
  memset(prop, 0, sizeof *prop);
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop->location.type = p->is_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
  prop->location.id = p->device;
  prop->allocFlags.gpuDirectRDMACapable = 1;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr ptr) {
  struct memory m;
  if (!memory_find((void *)ptr, &m))
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = m.base;
  if (size)
    *size = m.size;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr) {
  struct memory m;
  if (!memory_find((void *)ptr, &m))
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)data = m.on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)data = ptr;
    break;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (m.on_device)
      return CUDA_ERROR_INVALID_VALUE;
    *(void **)data = (void *)ptr;
    break;
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    *(unsigned *)data = 0;
    break;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    *(unsigned long long *)data = m.id;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)data = m.device;
    break;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    *(int *)data = m.kind == MEM_MALLOC;
    break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *(CUdeviceptr *)data = m.base;
    break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *(size_t *)data = m.size;
    break;
  case CU_POINTER_ATTRIBUTE_MAPPED:
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    *(int *)data = 1;
    break;
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    *(unsigned long long *)data = m.kind == MEM_VMM ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    break;
  default:
    LOG(LOG_INFO, "pointer attribute %d is not emulated", attribute);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}
