/* SPDX-License-Identifier: Apache-2.0 */
/* Device and pinned host memory.
 *
 * Both are ordinary memory of the process. Pages are allocated lazily, which is why a device can
 * report far more memory than the machine has. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/memory.h"
#include "tests/fake_cuda/runtime/stream.h"

#define PAGE 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory *memories;

size_t round_up(size_t size, size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

void memory_add(struct memory memory) {
  struct memory *m = malloc(sizeof *m);
  *m = memory;
  pthread_mutex_lock(&lock);
  m->next = memories;
  memories = m;
  pthread_mutex_unlock(&lock);
  LOG(LOG_DETAIL, "memory kind %d at %p, %zu bytes", memory.kind, (void *)memory.base, memory.size);
}

bool memory_find(const void *ptr, struct memory *out) {
  uintptr_t p = (uintptr_t)ptr;
  bool found = false;
  pthread_mutex_lock(&lock);
  for (struct memory *m = memories; m && !found; m = m->next) {
    if (p >= m->base && p - m->base < m->size) {
      *out = *m;
      found = true;
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

bool memory_take(const void *ptr, enum memory_kind kind, struct memory *out) {
  struct memory *m = NULL;
  pthread_mutex_lock(&lock);
  for (struct memory **link = &memories; *link; link = &(*link)->next) {
    if ((*link)->base == (uintptr_t)ptr && (*link)->kind == kind) {
      m = *link;
      *link = m->next;
      break;
    }
  }
  pthread_mutex_unlock(&lock);
  if (!m)
    return false;
  *out = *m;
  free(m);
  return true;
}

size_t memory_in_use(int device) {
  size_t bytes = 0;
  pthread_mutex_lock(&lock);
  for (const struct memory *m = memories; m; m = m->next) {
    if (m->kind == MEM_DEVICE && m->device == device)
      bytes += m->size;
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}

/* Pages of a kind, known from now on. */
static cudaError_t allocate(void **ptr, size_t size, enum memory_kind kind) {
  size_t n = round_up(size ? size : 1, PAGE);
  void *p =
      mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return error_set(cudaErrorMemoryAllocation);
  memory_add((struct memory){ (uintptr_t)p, n, kind, device_current(), NULL });
  *ptr = p;
  return cudaSuccess;
}

static cudaError_t free_pages(void *ptr, enum memory_kind kind) {
  struct memory m;
  if (!ptr)
    return cudaSuccess;
  if (!memory_take(ptr, kind, &m))
    return error_set(cudaErrorInvalidValue);
  munmap(ptr, m.size);
  return cudaSuccess;
}

EXPORT cudaError_t cudaMalloc(void **ptr, size_t size) {
  return allocate(ptr, size, MEM_DEVICE);
}

/* As in CUDA, freeing waits until the device is idle. */
EXPORT cudaError_t cudaFree(void *ptr) {
  if (!ptr)
    return cudaSuccess;
  cudaDeviceSynchronize();
  return free_pages(ptr, MEM_DEVICE);
}

EXPORT cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned flags) {
  return allocate(ptr, size, MEM_HOST);
}

EXPORT cudaError_t cudaFreeHost(void *ptr) {
  return free_pages(ptr, MEM_HOST);
}

EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned flags) {
  if (!ptr || !size)
    return error_set(cudaErrorInvalidValue);
  memory_add((struct memory){ (uintptr_t)ptr, size, MEM_REGISTERED, device_current(), NULL });
  return cudaSuccess;
}

EXPORT cudaError_t cudaHostUnregister(void *ptr) {
  struct memory m;
  if (!memory_take(ptr, MEM_REGISTERED, &m))
    return error_set(cudaErrorHostMemoryNotRegistered);
  return cudaSuccess;
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  *device = host;
  return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attr, const void *ptr) {
  struct memory m;
  memset(attr, 0, sizeof *attr);
  if (!memory_find(ptr, &m)) {
    attr->type = cudaMemoryTypeUnregistered;
    attr->device = -2;
    attr->hostPointer = (void *)ptr;
    return cudaSuccess;
  }
  bool on_device = m.kind == MEM_DEVICE;
  attr->type = on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attr->device = m.device;
  attr->devicePointer = (void *)ptr;
  attr->hostPointer = on_device ? NULL : (void *)ptr;
  return cudaSuccess;
}

EXPORT CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr ptr) {
  struct memory m;
  if (!memory_find((void *)ptr, &m))
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = m.base;
  if (size)
    *size = m.size;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr) {
  struct memory m;
  if (!memory_find((void *)ptr, &m))
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    LOG(LOG_INFO, "pointer attribute %d is not emulated", attribute);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *(int *)data = m.device;
  return CUDA_SUCCESS;
}

/* ---- stream ordered allocation: pools are a formality here ---- */

static char the_pool;

EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const void *props) {
  *pool = (cudaMemPool_t)&the_pool;
  return cudaSuccess;
}

SUCCEEDS(cudaMemPoolDestroy)
SUCCEEDS(cudaMemPoolSetAttribute)

EXPORT cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  return allocate(ptr, size, MEM_DEVICE);
}

static void run_free(void *ptr) {
  free_pages(ptr, MEM_DEVICE);
}

EXPORT cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream) {
  return stream_submit(stream_resolve(stream), op_new(run_free, NULL, ptr));
}
