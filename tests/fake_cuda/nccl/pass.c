/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: what different warps of a block do at the same time, here one thread each. */
#include <pthread.h>

#include "tests/fake_cuda/nccl/block.h"

static void *run(void *arg) {
  struct pass *pass = arg;
  struct prims p;
  prims_init(&p, pass->b, pass->r, &pass->config);
  for (ssize_t i = 0; i < pass->n_chunks; i++) {
    ssize_t at = pass->begin + i * pass->stride;
    ssize_t left = pass->end - at;
    if (pass->kind == PASS_OP)
      prims_op(&p, pass->flags, pass->src, pass->dst, at, at, MIN(pass->chunk, left));
    else if (pass->kind == PASS_SCATTER)
      prims_scatter(&p, at, MIN(pass->chunk * pass->chunks_at_once, left), pass->chunk, pass->own);
    else
      prims_gather(&p, at, MIN(pass->chunk * pass->chunks_at_once, left), pass->chunk, pass->own);
  }
  prims_finish(&p);
  return NULL;
}

void passes_run(struct pass *passes, int count) {
  pthread_t threads[4];
  for (int i = 1; i < count; i++)
    pthread_create(&threads[i - 1], NULL, run, &passes[i]);
  run(&passes[0]);
  for (int i = 1; i < count; i++)
    pthread_join(threads[i - 1], NULL);
}
