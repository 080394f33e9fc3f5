/* SPDX-License-Identifier: Apache-2.0 */
/* Ring and tree schedules: src/device/all_reduce.h, all_gather.h, reduce_scatter.h, broadcast.h,
 * reduce.h. */
#include <pthread.h>
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"

/* CHUNKSTEPS / SLICESTEPS and SLICESTEPS of src/include/collectives.h */
#define RING_SLICES 2
#define RING_STEPS 2

static struct prims_config ring_config(const struct block *b, const struct collective *c,
                                       int proto) {
  return (struct prims_config){ .proto = proto,
                                .slices = RING_SLICES,
                                .steps_per_slice = RING_STEPS,
                                .recv_peers = &b->ring_prev,
                                .send_peers = &b->ring_next,
                                .max_recv = 1,
                                .max_send = 1,
                                .in = c->sendbuff,
                                .out = c->recvbuff };
}

void ring_allreduce(struct block *b, const struct collective *c, struct reduction r, int proto) {
  int n = b->n_ranks;
  int index = b->ring_index;
  struct part part = collective_part(b, c, proto, r.size);
  struct prims_config config = ring_config(b, c, proto);
  struct prims p;
  int recv_reduce = b->facts->direct_reduce ? DIRECT_RECV : RECV;
  int send_reduce = b->facts->direct_reduce ? DIRECT_SEND : SEND;
  ssize_t chunk = part.chunk;
  ssize_t loop = n * chunk;

  config.net_reg = c->net_reg_used;
  prims_init(&p, b, r, &config);
  for (ssize_t start = 0; start < part.length; start += loop) {
    ssize_t remaining = part.length - start;
    if (remaining < loop) {
      ssize_t align = 16 / r.size;
      chunk = ((remaining + n - 1) / n + align - 1) / align * align;
    }
    /* Step j works on the chunk of the rank j places back: first reducing, then copying. */
    for (int j = 1; j < 2 * n; j++) {
      ssize_t chunk_offset = (index + 2 * n - j) % n * chunk;
      ssize_t at = part.offset + start + chunk_offset;
      ssize_t count = MIN(chunk, remaining - chunk_offset);
      if (j == 1)
        prims_op(&p, send_reduce, BUF_IN, BUF_NONE, at, at, count);
      else if (j < n)
        prims_op(&p, recv_reduce | send_reduce, BUF_IN, BUF_NONE, at, at, count);
      else if (j == n)
        prims_op(&p, recv_reduce | DIRECT_SEND | POST_OP, BUF_IN, BUF_OUT, at, at, count);
      else if (j < 2 * n - 1)
        prims_op(&p, DIRECT_RECV | DIRECT_SEND, BUF_NONE, BUF_OUT, at, at, count);
      else
        prims_op(&p, DIRECT_RECV, BUF_NONE, BUF_OUT, at, at, count);
    }
  }
  prims_finish(&p);
}

void ring_allgather(struct block *b, const struct collective *c, struct reduction r, int proto) {
  int n = b->n_ranks;
  struct part part = collective_part(b, c, proto, r.size);
  struct prims_config config = ring_config(b, c, proto);
  struct prims p;
  /* With one rank per node and registered buffers the NICs do all the work, in one huge step. */
  bool offload = c->is_one_rank && c->net_reg_used && proto == PROTO_SIMPLE;

  config.net_reg = c->net_reg_used;
  if (offload) {
    part.chunk = 1l << 30;
    config.slices = 1;
    config.steps_per_slice = 1;
    config.step_elements = 1l << 30;
  }
  prims_init(&p, b, r, &config);
  p.net_offload = offload;
  for (ssize_t start = 0; start < part.length; start += part.chunk) {
    ssize_t count = MIN(part.chunk, part.length - start);
    ssize_t in = part.offset + start;
    ssize_t out = in + b->ring_user_ranks[0] * part.count;
    bool in_place = c->sendbuff + in * r.size == c->recvbuff + out * r.size;
    prims_op(&p, DIRECT_SEND, BUF_IN, in_place || offload ? BUF_NONE : BUF_OUT, in, out, count);
    for (int j = 1; j < n - 1; j++) {
      out = in + b->ring_user_ranks[n - j] * part.count;
      prims_op(&p, DIRECT_RECV | DIRECT_SEND, BUF_NONE, BUF_OUT, out, out, count);
    }
    out = in + b->ring_user_ranks[1] * part.count;
    prims_op(&p, DIRECT_RECV, BUF_NONE, BUF_OUT, out, out, count);
  }
  prims_finish(&p);
  if (offload) {
    char *own = c->recvbuff + (part.offset + b->ring_user_ranks[0] * part.count) * r.size;
    memmove(own, c->sendbuff + part.offset * r.size, (size_t)(part.length * r.size));
  }
}

void ring_reducescatter(struct block *b, const struct collective *c, struct reduction r,
                        int proto) {
  int n = b->n_ranks;
  struct part part = collective_part(b, c, proto, r.size);
  struct prims_config config = ring_config(b, c, proto);
  struct prims p;

  prims_init(&p, b, r, &config);
  for (ssize_t start = 0; start < part.length; start += part.chunk) {
    ssize_t count = MIN(part.chunk, part.length - start);
    ssize_t at = part.offset + start;
    ssize_t in = at + b->ring_user_ranks[n - 1] * part.count;
    prims_op(&p, SEND, BUF_IN, BUF_NONE, in, in, count);
    for (int j = 2; j < n; j++) {
      in = at + b->ring_user_ranks[n - j] * part.count;
      prims_op(&p, RECV | SEND, BUF_IN, BUF_NONE, in, in, count);
    }
    in = at + b->ring_user_ranks[0] * part.count;
    prims_op(&p, RECV | POST_OP, BUF_IN, BUF_OUT, in, at, count);
  }
  prims_finish(&p);
}

void ring_broadcast(struct block *b, const struct collective *c, struct reduction r, int proto) {
  struct part part = collective_part(b, c, proto, r.size);
  struct prims_config config = ring_config(b, c, proto);
  struct prims p;
  bool offload = c->is_one_rank && c->net_reg_used;
  bool is_root = b->ring_user_ranks[0] == c->root;
  bool next_is_root = b->ring_user_ranks[1] == c->root;

  config.slices = 1;
  config.steps_per_slice = 1;
  if (b->facts->direct_broadcast)
    config.net_reg = c->net_reg_used;
  prims_init(&p, b, r, &config);
  for (ssize_t start = 0; start < part.length; start += part.chunk) {
    ssize_t count = MIN(part.chunk, part.length - start);
    ssize_t at = part.offset + start;
    if (is_root) {
      bool copy = c->sendbuff != c->recvbuff && !offload;
      prims_op(&p, DIRECT_SEND, BUF_IN, copy ? BUF_OUT : BUF_NONE, at, at, count);
    } else if (next_is_root) {
      prims_op(&p, DIRECT_RECV, BUF_NONE, BUF_OUT, at, at, count);
    } else {
      prims_op(&p, DIRECT_RECV | DIRECT_SEND, BUF_NONE, BUF_OUT, at, at, count);
    }
  }
  prims_finish(&p);
  if (offload && is_root && c->sendbuff != c->recvbuff) {
    ssize_t at = part.offset * r.size;
    memmove(c->recvbuff + at, c->sendbuff + at, (size_t)(part.length * r.size));
  }
}

void ring_reduce(struct block *b, const struct collective *c, struct reduction r, int proto) {
  struct part part = collective_part(b, c, proto, r.size);
  struct prims_config config = ring_config(b, c, proto);
  struct prims p;
  bool previous_is_root = b->ring_user_ranks[b->n_ranks - 1] == c->root;

  config.slices = 1;
  config.steps_per_slice = 1;
  prims_init(&p, b, r, &config);
  for (ssize_t start = 0; start < part.length; start += part.chunk) {
    ssize_t count = MIN(part.chunk, part.length - start);
    ssize_t at = part.offset + start;
    if (previous_is_root)
      prims_op(&p, SEND, BUF_IN, BUF_NONE, at, at, count);
    else if (b->rank == c->root)
      prims_op(&p, RECV | POST_OP, BUF_IN, BUF_OUT, at, at, count);
    else
      prims_op(&p, RECV | SEND, BUF_IN, BUF_NONE, at, at, count);
  }
  prims_finish(&p);
}

/* ---- passes: what different warps of a block do at the same time, here one thread each ---- */

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

/* ---- tree all-reduce (runTreeSplit): data is reduced up the tree and the result is sent down.
 * Below the root both directions run at the same time. ---- */

#define ROOT_CHILDREN 2
#define CHILDREN 3

static struct prims_config tree_config(const struct collective *c, int proto) {
  return (struct prims_config){ .proto = proto,
                                .slices = 1,
                                .steps_per_slice = 1,
                                .in = c->sendbuff,
                                .out = c->recvbuff,
                                .net_reg = c->net_reg_used };
}

void tree_allreduce(struct block *b, const struct collective *c, struct reduction r, int proto) {
  struct nccl_tree *tree = &b->tree;
  struct part part = collective_part(b, c, proto, r.size);
  bool is_root = tree->up == -1;
  bool is_leaf = tree->down[0] == -1;
  int recv_reduce = b->facts->direct_reduce ? DIRECT_RECV : RECV;
  int send_reduce = b->facts->direct_reduce ? DIRECT_SEND : SEND;
  struct pass up = { .b = b,
                     .r = r,
                     .config = tree_config(c, proto),
                     .chunk = part.chunk,
                     .begin = part.offset,
                     .stride = part.chunk,
                     .n_chunks = part.chunk ? (part.length + part.chunk - 1) / part.chunk : 0,
                     .end = part.offset + part.length };

  up.src = BUF_IN;
  up.config.recv_peers = tree->down;
  if (is_root) {
    up.config.send_peers = tree->down;
    up.config.max_recv = ROOT_CHILDREN;
    up.config.max_send = ROOT_CHILDREN;
    up.dst = BUF_OUT;
    up.flags = recv_reduce | DIRECT_SEND | POST_OP;
    passes_run(&up, 1);
    return;
  }
  up.config.send_peers = &tree->up;
  up.config.max_recv = CHILDREN;
  up.config.max_send = 1;
  up.dst = BUF_NONE;
  up.flags = is_leaf ? send_reduce : recv_reduce | send_reduce;

  struct pass down = up;
  down.config.recv_peers = &tree->up;
  down.config.send_peers = tree->down;
  down.config.max_recv = 1;
  down.config.max_send = CHILDREN;
  down.src = BUF_NONE;
  down.dst = BUF_OUT;
  down.flags = is_leaf ? DIRECT_RECV : DIRECT_RECV | DIRECT_SEND;
  struct pass both[] = { up, down };
  passes_run(both, 2);
}
