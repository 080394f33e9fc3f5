/* SPDX-License-Identifier: Apache-2.0 */
/* device: the calling thread's current device, attributes, CUDA's error state, and diagnostics on
 * stderr, of which FAKE_CUDA_LOG chooses the level.
 * Owns: nothing.  Threads: any; the current device and the last error are per thread.
 * Blocks: never.  Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_DEVICE_H
#define FAKE_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "cuda_runtime.h"
#include "tests/fake_cuda/runtime/config.h"

#define SHARED_MEMORY_OPTIN_BYTES (227 << 10)
#define DEVICE_MEMORY_BYTES (80ull << 30)
#define EXPORT __attribute__((visibility("default")))
/* A function that has nothing to do, whatever its arguments. */
#define SUCCEEDS(name)                                                                             \
  EXPORT int name(void) {                                                                          \
    return 0;                                                                                      \
  }

bool device_is_valid(int device);
int device_current(void);
void device_set_current(int device);
/* Value of a CUdevice_attribute or cudaDeviceAttr, which share their numbers. */
cudaError_t device_attribute(int *value, int attribute, int device);

/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t error_set(cudaError_t error);
/* A kernel could not be run: every synchronisation reports it from now on, as after a GPU fault. */
void device_set_fault(void);
cudaError_t device_fault(void);

enum { LOG_ERROR, LOG_INFO, LOG_LAUNCH, LOG_DETAIL, LOG_TRACE };
extern int log_level;
void log_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define LOG(level, ...)                                                                            \
  do {                                                                                             \
    if (log_level >= (level))                                                                      \
      log_print(__VA_ARGS__);                                                                      \
  } while (0)

#endif
