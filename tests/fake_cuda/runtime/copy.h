/* SPDX-License-Identifier: Apache-2.0 */
/* copy: ops that move or fill memory.
 * Owns: nothing; source and destination must last until the op has run.  Threads: any.
 * Blocks: never. */
#ifndef FAKE_CUDA_COPY_H
#define FAKE_CUDA_COPY_H

#include <stddef.h>

#include "tests/fake_cuda/runtime/op.h"

struct op *copy_op(void *dst, const void *src, size_t size);
struct op *fill_op(void *dst, int value, size_t size);

#endif
