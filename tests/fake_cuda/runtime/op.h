/* SPDX-License-Identifier: Apache-2.0 */
/* op: one piece of work for a stream, with the way to free its argument. A graph runs an op once
 * per launch, hence the reference count.
 * Owns: the argument, until the last reference goes.  Threads: any.  Blocks: never. */
#ifndef FAKE_CUDA_OP_H
#define FAKE_CUDA_OP_H

struct op {
  void (*run)(void *arg);
  void (*destroy)(void *arg); /* NULL: the argument needs none */
  void *arg;
  int references;
};

struct op *op_new(void (*run)(void *arg), void (*destroy)(void *arg), void *arg);
struct op *op_retain(struct op *op);
void op_release(struct op *op);

#endif
