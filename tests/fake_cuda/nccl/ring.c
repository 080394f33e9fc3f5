/* SPDX-License-Identifier: Apache-2.0 */
/* Ring schedules: src/device/all_reduce.h, all_gather.h, reduce_scatter.h, broadcast.h, reduce.h.
 */
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
