/* SPDX-License-Identifier: Apache-2.0 */
/* device: the emulated GPUs, the calling thread's current one, and CUDA's error state.
 * Owns: the device table, filled before main from FAKE_CUDA_*.  Threads: any; the current device
 * and the last error are per thread.  Blocks: never.  Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_DEVICE_H
#define FAKE_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "cuda_runtime.h"

#define MAX_DEVICES 16
#define DEVICE_MEMORY_BYTES (80ull << 30)
#define SHARED_MEMORY_OPTIN_BYTES (227 << 10)
#define EXPORT __attribute__((visibility("default")))

struct device {
  char bus_id[16];
  unsigned domain, bus, slot;
};
extern int device_count;
extern int device_first; /* number of device 0 among the host's emulated GPUs */
extern int device_cc;    /* compute capability, major * 10 + minor */
extern struct device devices[MAX_DEVICES];

bool device_is_valid(int device);
int device_current(void);
void device_set_current(int device);
/* True when the environment variable is set, and neither empty nor 0. */
bool env_flag(const char *name);
/* Value of a CUdevice_attribute or cudaDeviceAttr, which share their numbers. */
cudaError_t device_attribute(int *value, int attribute, int device);

/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t error_set(cudaError_t error);
/* A kernel could not be run: every synchronisation reports it from now on, as after a GPU fault. */
void device_set_fault(void);
cudaError_t device_fault(void);

#endif
