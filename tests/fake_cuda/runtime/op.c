/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counted pieces of work. */
#include <stdlib.h>

#include "tests/fake_cuda/runtime/op.h"

struct op *op_new(void (*run)(void *arg), void (*destroy)(void *arg), void *arg) {
  struct op *op = malloc(sizeof *op);
  *op = (struct op){ .run = run, .destroy = destroy, .arg = arg, .references = 1 };
  return op;
}

struct op *op_retain(struct op *op) {
  __atomic_add_fetch(&op->references, 1, __ATOMIC_RELAXED);
  return op;
}

void op_release(struct op *op) {
  if (__atomic_sub_fetch(&op->references, 1, __ATOMIC_ACQ_REL))
    return;
  if (op->destroy)
    op->destroy(op->arg);
  free(op);
}
