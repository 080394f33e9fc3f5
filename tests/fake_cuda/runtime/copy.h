/* SPDX-License-Identifier: Apache-2.0 */
/* copy: ops that move or fill memory.
 * Owns: a staged copy of the source, where asked for.  Threads: any.  Blocks: never. */
#ifndef FAKE_CUDA_COPY_H
#define FAKE_CUDA_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/fake_cuda/runtime/op.h"

struct op *copy_op(void *dst, const void *src, size_t size, bool is_staged);
struct op *fill_op(void *dst, int value, size_t size);

#endif
