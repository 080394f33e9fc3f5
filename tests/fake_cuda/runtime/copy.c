/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills.
 *
 * As in CUDA, a pageable source may be reused as soon as an asynchronous copy returns, and a
 * pageable destination is complete on return. Here both are: such a copy waits for its stream.
 * NCCL relies on it, as src/channel.cc copies from variables on the stack. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/runtime/memory.h"
#include "tests/fake_cuda/runtime/stream.h"

struct copy {
  void *dst;
  const void *src; /* NULL: fill */
  size_t size;
  int value;
};

static void run_copy(void *arg) {
  const struct copy *c = arg;
  if (c->src)
    memmove(c->dst, c->src, c->size);
  else
    memset(c->dst, c->value, c->size);
}

static bool is_pageable(const void *ptr) {
  struct memory m;
  return !memory_find(ptr, &m);
}

static struct op *copy_op(void *dst, const void *src, size_t size) {
  struct copy *c = malloc(sizeof *c);
  *c = (struct copy){ .dst = dst, .src = src, .size = size };
  return op_new(run_copy, free, c);
}

static struct op *fill_op(void *dst, int value, size_t size) {
  struct copy *c = malloc(sizeof *c);
  *c = (struct copy){ .dst = dst, .size = size, .value = value };
  return op_new(run_copy, free, c);
}

EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size,
                                   enum cudaMemcpyKind kind, cudaStream_t handle) {
  if (!size)
    return cudaSuccess;
  if (!dst || !src)
    return error_set(cudaErrorInvalidValue);
  struct CUstream_st *stream = stream_resolve(handle);
  bool must_wait = is_pageable(dst) || is_pageable(src);
  cudaError_t error = stream_submit(stream, copy_op(dst, src, size));
  return error || !must_wait ? error : stream_wait_idle(stream);
}

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind) {
  cudaError_t error = cudaMemcpyAsync(dst, src, size, kind, NULL);
  return error ? error : stream_wait_idle(stream_resolve(NULL));
}

EXPORT cudaError_t cudaMemsetAsync(void *dst, int value, size_t size, cudaStream_t stream) {
  return stream_submit(stream_resolve(stream), fill_op(dst, value, size));
}

EXPORT cudaError_t cudaMemset(void *dst, int value, size_t size) {
  cudaError_t error = cudaMemsetAsync(dst, value, size, NULL);
  return error ? error : stream_wait_idle(stream_resolve(NULL));
}
