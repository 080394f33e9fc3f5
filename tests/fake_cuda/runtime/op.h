/* SPDX-License-Identifier: Apache-2.0 */
/* op: one piece of work for a stream, with the way to free its argument.
 * Owns: the argument.  Threads: any.  Blocks: never. */
#ifndef FAKE_CUDA_OP_H
#define FAKE_CUDA_OP_H

struct op {
  void (*run)(void *arg);
  void (*destroy)(void *arg); /* NULL: the argument needs none */
  void *arg;
};

struct op *op_new(void (*run)(void *arg), void (*destroy)(void *arg), void *arg);
void op_free(struct op *op);

#endif
