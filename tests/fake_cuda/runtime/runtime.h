/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces between the parts of the emulated CUDA runtime. */
#ifndef FAKE_CUDA_RUNTIME_H
#define FAKE_CUDA_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "cuda_runtime.h"

#define MAX_DEVICES 16
#define DEVICE_MEMORY_BYTES (80ull << 30)
#define EXPORT __attribute__((visibility("default")))

/* ---- log.c ---- */

enum { LOG_ERROR, LOG_INFO, LOG_LAUNCH, LOG_DETAIL, LOG_TRACE };
extern int log_level;
void log_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define LOG(level, ...)                                                                            \
  do {                                                                                             \
    if (log_level >= (level))                                                                      \
      log_print(__VA_ARGS__);                                                                      \
  } while (0)

/* ---- device.c ---- */

struct device {
  char busId[16];
  unsigned domain, bus, slot;
};
extern int device_count;
extern struct device devices[MAX_DEVICES];

int device_current(void);
void device_set_current(int device);
bool env_flag(const char *name);
cudaError_t device_attribute(int *value, int attr, int device);

/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t error_set(cudaError_t error);
/* A kernel could not be run: from now on every synchronisation reports it, as after a device fault.
 */
void device_set_fault(void);
cudaError_t device_fault(void);

/* ---- memory.c ---- */

enum memory_kind { MEM_MALLOC, MEM_HOST, MEM_REGISTERED, MEM_VMM, MEM_IPC };

/* One mapping that the "device" can reach. */
struct memory {
  uintptr_t base;
  size_t size;
  enum memory_kind kind;
  bool on_device;
  int device;
  int fd;                /* memfd behind the mapping, -1 if none or owned by the VMM handle */
  struct physical *phys; /* MEM_VMM only */
  unsigned long long id;
  struct memory *next;
};

void memory_add(struct memory memory);
/* Copies the record that contains the address; false if it is not known memory. */
bool memory_find(const void *ptr, struct memory *out);
/* Removes the record that starts at the address and has this kind. */
bool memory_take(const void *ptr, enum memory_kind kind, struct memory *out);
cudaError_t memory_alloc_device(void **ptr, size_t size);
cudaError_t memory_free_device(void *ptr);
size_t round_up(size_t size, size_t alignment);
int memory_memfd(size_t size);
void *memory_map_fd(int fd, size_t size, size_t offset);

/* ---- vmm.c ---- */

struct physical {
  int fd;
  int references;
  int device;
  bool host;
  size_t size;
};
/* Forgets dma-buf exports inside a range that is being unmapped. */
void vmm_forget_dmabuf(uintptr_t base, size_t size);

/* ---- stream.c ---- */

/* Appends work to a stream; run(arg) executes later, in order, on the stream's thread. */
void stream_submit(cudaStream_t stream, void (*run)(void *arg), void *arg);
cudaError_t stream_wait_idle(cudaStream_t stream);

/* ---- launch.c ---- */

struct kernel {
  const void *host_function;
  char *name;
  struct kernel *next;
};
CUresult launch_kernel(struct kernel *kernel, unsigned grid, unsigned block, cudaStream_t stream,
                       void **params, void **extra);

/* ---- driver.c ---- */

/* Address of a driver API function, or NULL. */
void *driver_entry(const char *symbol);

/* ---- nccl_kernel.c ---- */

/* Runs an NCCL kernel to completion on the calling thread (plus one thread per further block).
 * Returns 0, or -1 if this kernel is not emulated. */
int nccl_run_kernel(const struct kernel *kernel, unsigned grid, const void *args);
/* Sizes of the kernel's parameters, in order, terminated by 0; NULL for an unknown kernel. */
const size_t *nccl_kernel_params(const char *name);

#endif
