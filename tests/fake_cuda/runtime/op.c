/* SPDX-License-Identifier: Apache-2.0 */
/* See op.h. */
#include <stdlib.h>

#include "tests/fake_cuda/runtime/op.h"

struct op *op_new(void (*run)(void *arg), void (*destroy)(void *arg), void *arg) {
  struct op *op = malloc(sizeof *op);
  *op = (struct op){ .run = run, .destroy = destroy, .arg = arg };
  return op;
}

void op_free(struct op *op) {
  if (op->destroy)
    op->destroy(op->arg);
  free(op);
}
