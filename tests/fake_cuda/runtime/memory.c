/* SPDX-License-Identifier: Apache-2.0 */
/* Device and pinned host memory.
 *
 * "Device memory" is ordinary memory backed by a memfd, so that another process can map the same
 * pages (IPC handles) and so that a dma-buf file descriptor can be produced for it. Pages are
 * allocated lazily, which is why a device can report far more memory than the machine has. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/log.h"
#include "tests/fake_cuda/runtime/memory.h"
#include "tests/fake_cuda/runtime/stream.h"

#define PAGE 4096
#define IPC_MAGIC 0x43504945u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory *memories;
static unsigned long long last_id;

size_t round_up(size_t size, size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

int memory_memfd(size_t size) {
  int fd = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, (off_t)size)) {
    close(fd);
    fd = -1;
  }
  return fd;
}

void *memory_map_fd(int fd, size_t size, size_t offset) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
  return p == MAP_FAILED ? NULL : p;
}

void memory_add(struct memory memory) {
  struct memory *m = malloc(sizeof *m);
  *m = memory;
  pthread_mutex_lock(&lock);
  m->id = ++last_id;
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
    if (m->on_device && m->device == device && m->kind != MEM_IPC)
      bytes += m->size;
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}

cudaError_t memory_alloc_device(void **ptr, size_t size) {
  size_t n = round_up(size ? size : 1, PAGE);
  int fd = memory_memfd(n);
  if (fd < 0)
    return error_set(cudaErrorMemoryAllocation);
  void *p = memory_map_fd(fd, n, 0);
  if (!p) {
    close(fd);
    return error_set(cudaErrorMemoryAllocation);
  }
  memory_add((struct memory){ .base = (uintptr_t)p,
                              .size = n,
                              .kind = MEM_MALLOC,
                              .on_device = true,
                              .device = device_current(),
                              .fd = fd });
  *ptr = p;
  return cudaSuccess;
}

cudaError_t memory_free_device(void *ptr) {
  struct memory m;
  if (!ptr)
    return cudaSuccess;
  if (!memory_take(ptr, MEM_MALLOC, &m))
    return error_set(cudaErrorInvalidValue);
  munmap(ptr, m.size);
  close(m.fd);
  return cudaSuccess;
}

EXPORT cudaError_t cudaMalloc(void **ptr, size_t size) {
  return memory_alloc_device(ptr, size);
}

/* As in CUDA, freeing waits until the device is idle. */
EXPORT cudaError_t cudaFree(void *ptr) {
  if (!ptr)
    return cudaSuccess;
  cudaDeviceSynchronize();
  return memory_free_device(ptr);
}

EXPORT cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned flags) {
  (void)flags;
  size_t n = round_up(size ? size : 1, PAGE);
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return error_set(cudaErrorMemoryAllocation);
  memory_add((struct memory){
      .base = (uintptr_t)p, .size = n, .kind = MEM_HOST, .device = device_current(), .fd = -1 });
  *ptr = p;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFreeHost(void *ptr) {
  struct memory m;
  if (!ptr)
    return cudaSuccess;
  if (!memory_take(ptr, MEM_HOST, &m))
    return error_set(cudaErrorInvalidValue);
  munmap(ptr, m.size);
  return cudaSuccess;
}

EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned flags) {
  (void)flags;
  if (!ptr || !size)
    return error_set(cudaErrorInvalidValue);
  memory_add((struct memory){ .base = (uintptr_t)ptr,
                              .size = size,
                              .kind = MEM_REGISTERED,
                              .device = device_current(),
                              .fd = -1 });
  return cudaSuccess;
}

EXPORT cudaError_t cudaHostUnregister(void *ptr) {
  struct memory m;
  if (!memory_take(ptr, MEM_REGISTERED, &m))
    return error_set(cudaErrorHostMemoryNotRegistered);
  return cudaSuccess;
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
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
  attr->type = m.on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attr->device = m.device;
  attr->devicePointer = (void *)ptr;
  attr->hostPointer = m.on_device ? NULL : (void *)ptr;
  return cudaSuccess;
}

/* ---- sharing between processes: the owner's memfd, opened through /proc ---- */

struct ipc_handle {
  uint32_t magic;
  int32_t pid;
  int32_t fd;
  uint32_t device;
  uint64_t size;
};
_Static_assert(sizeof(struct ipc_handle) <= sizeof(cudaIpcMemHandle_t), "handle size");

EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr) {
  struct memory m;
  if (!memory_find(ptr, &m) || m.kind != MEM_MALLOC)
    return error_set(cudaErrorInvalidValue);
  struct ipc_handle h = {
    .magic = IPC_MAGIC, .pid = getpid(), .fd = m.fd, .device = (uint32_t)m.device, .size = m.size
  };
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &h, sizeof h);
  return cudaSuccess;
}

EXPORT cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned flags) {
  (void)flags;
  struct ipc_handle h;
  memcpy(&h, &handle, sizeof h);
  if (h.magic != IPC_MAGIC)
    return error_set(cudaErrorInvalidValue);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.fd);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    LOG(LOG_ERROR, "cannot open %s: %s", path, strerror(errno));
    return error_set(cudaErrorInvalidValue);
  }
  void *p = memory_map_fd(fd, h.size, 0);
  if (!p) {
    close(fd);
    return error_set(cudaErrorMemoryAllocation);
  }
  memory_add((struct memory){ .base = (uintptr_t)p,
                              .size = h.size,
                              .kind = MEM_IPC,
                              .on_device = true,
                              .device = device_current(),
                              .fd = fd });
  *ptr = p;
  return cudaSuccess;
}

EXPORT cudaError_t cudaIpcCloseMemHandle(void *ptr) {
  struct memory m;
  if (!memory_take(ptr, MEM_IPC, &m))
    return error_set(cudaErrorInvalidValue);
  munmap(ptr, m.size);
  close(m.fd);
  return cudaSuccess;
}

/* ---- stream ordered allocation: pools are a formality here ---- */

static char the_pool;

EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const void *props) {
  (void)props;
  *pool = (cudaMemPool_t)&the_pool;
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  (void)pool;
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attr, void *value) {
  (void)pool;
  (void)attr;
  (void)value;
  return cudaSuccess;
}

EXPORT cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  (void)pool;
  (void)stream;
  return memory_alloc_device(ptr, size);
}

static void run_free(void *ptr) {
  memory_free_device(ptr);
}

EXPORT cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream) {
  return stream_submit(stream_resolve(stream), op_new(run_free, NULL, ptr));
}
