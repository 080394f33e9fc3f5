/* SPDX-License-Identifier: Apache-2.0 */
/* memory: every mapping that an emulated GPU can reach.
 * Owns: the list of mappings.  Threads: any; one lock.  Blocks: on that lock only.
 * Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_MEMORY_H
#define FAKE_CUDA_MEMORY_H

#include "tests/fake_cuda/runtime/device.h"

enum memory_kind { MEM_DEVICE, MEM_HOST, MEM_REGISTERED };

struct memory {
  uintptr_t base;
  size_t size;
  enum memory_kind kind;
  int device;
  struct memory *next;
};

void memory_add(struct memory memory);
/* Copies the record that contains the address; false if it is not known memory. */
bool memory_find(const void *ptr, struct memory *out);
/* Removes the record that starts at the address and has this kind. */
bool memory_take(const void *ptr, enum memory_kind kind, struct memory *out);
/* What a device's allocations take, in bytes. */
size_t memory_in_use(int device);
size_t round_up(size_t size, size_t alignment);

#endif
