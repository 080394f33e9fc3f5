/* SPDX-License-Identifier: Apache-2.0 */
/* memory: every mapping that an emulated GPU can reach, and the memfds behind device memory.
 * Owns: the list of mappings.  Threads: any; one lock.  Blocks: on that lock only.
 * Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_MEMORY_H
#define FAKE_CUDA_MEMORY_H

#include "tests/fake_cuda/runtime/device.h"

enum memory_kind { MEM_MALLOC, MEM_HOST, MEM_REGISTERED, MEM_VMM, MEM_IPC };

/* A physical allocation of the driver's VMM API. */
struct physical {
  int fd;
  int references;
  int device;
  bool is_host;
  size_t size;
};

struct memory {
  uintptr_t base;
  size_t size;
  enum memory_kind kind;
  bool on_device;
  int device;
  int fd;                    /* memfd behind the mapping; -1 if none or if the VMM handle owns it */
  struct physical *physical; /* MEM_VMM only */
  unsigned long long id;
  struct memory *next;
};

void memory_add(struct memory memory);
/* Copies the record that contains the address; false if it is not known memory. */
bool memory_find(const void *ptr, struct memory *out);
/* Removes the record that starts at the address and has this kind. */
bool memory_take(const void *ptr, enum memory_kind kind, struct memory *out);
/* What a device's allocations take, in bytes. */
size_t memory_in_use(int device);
cudaError_t memory_alloc_device(void **ptr, size_t size);
cudaError_t memory_free_device(void *ptr);
size_t round_up(size_t size, size_t alignment);
int memory_memfd(size_t size);
void *memory_map_fd(int fd, size_t size, size_t offset);

#endif
