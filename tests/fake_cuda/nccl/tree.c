/* SPDX-License-Identifier: Apache-2.0 */
/* Tree all-reduce (runTreeSplit of src/device/all_reduce.h): data is reduced up the tree and the
 * result is sent down. Below the root both directions run at the same time.
 *
 * CollNetChain (RunWorkColl<..., NCCL_ALGO_COLLNET_CHAIN, ...> there) is the same along the GPUs of
 * one host. Above its first GPU, the head, is the network, whose proxies have the plugin sum what
 * the heads of all hosts send: the head is nobody's root, it has a peer of its own number. */
#include <pthread.h>

#include "tests/fake_cuda/nccl/block.h"

#define ROOT_CHILDREN 2
#define CHILDREN 3

/* Connectors of a chain: towards the network, and back. */
enum { CHAIN_DOWN, CHAIN_UP };

static struct prims_config tree_config(const struct collective *c, int proto) {
  return (struct prims_config){ .proto = proto,
                                .slices = 1,
                                .steps_per_slice = 1,
                                .in = c->sendbuff,
                                .out = c->recvbuff,
                                .direct = true,
                                .net_reg = c->net_reg_used,
                                .ipc_reg = c->reg_used,
                                .work = c };
}

/* One direction, or both at the root: the same operation on every chunk of this channel. Chunks
 * start at begin + i * stride; one that starts behind the end is empty, but counts as a step. */
struct pass {
  struct block *b;
  struct reduction r;
  struct prims_config config;
  int flags;
  enum buffer src, dst;
  ssize_t chunk, begin, stride, n_chunks, end;
};

static void run_pass(struct pass *pass) {
  struct prims p;
  prims_init(&p, pass->b, pass->r, &pass->config);
  for (ssize_t i = 0; i < pass->n_chunks; i++) {
    ssize_t at = pass->begin + i * pass->stride;
    prims_op(&p, pass->flags, pass->src, pass->dst, at, at, MIN(pass->chunk, pass->end - at));
  }
  prims_finish(&p);
}

static void *pass_thread(void *arg) {
  run_pass(arg);
  return NULL;
}

static void run_both(struct pass *up, struct pass *down) {
  pthread_t thread;
  pthread_create(&thread, NULL, pass_thread, down);
  run_pass(up);
  pthread_join(thread, NULL);
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
    run_pass(&up);
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
  run_both(&up, &down);
}

/* One GPU per host and registered buffers: the proxies do everything between them. */
static void chain_registered(struct block *b, const struct collective *c, int size) {
  size_t step_bytes = b->facts->collnet_reg_step;
  size_t bytes = c->collnet.count * (size_t)size;
  size_t steps = step_bytes ? (bytes + step_bytes - 1) / step_bytes : 1;
  struct nccl_peer *network = b->peers[b->n_ranks];
  prims_give_steps(&network->send[CHAIN_UP], steps);
  prims_await_steps(b, &network->recv[CHAIN_DOWN], steps);
}

void chain_allreduce(struct block *b, const struct collective *c, struct reduction r) {
  struct nccl_tree *chain = &b->collnet_chain;
  bool is_head = chain->up == b->n_ranks;
  bool is_last = chain->down[0] == -1;
  bool direct = b->facts->direct_reduce;
  ssize_t count = (ssize_t)c->collnet.count, chunk = c->collnet.chunk_count;
  ssize_t stride = chunk * (c->channel_hi - c->channel_lo + 1);
  if (c->collnet_reg_used && is_head && is_last) {
    chain_registered(b, c, r.size);
    return;
  }

  struct pass up = { .b = b,
                     .r = r,
                     .config = tree_config(c, PROTO_SIMPLE),
                     .src = BUF_IN,
                     .dst = BUF_NONE,
                     .chunk = chunk,
                     .begin = (b->channel_id - c->channel_lo) * chunk,
                     .stride = stride,
                     .n_chunks = (count + stride - 1) / stride,
                     .end = count };
  up.config.net_reg = false;
  up.config.max_recv = 1;
  up.config.max_send = 1;

  struct pass down = up;
  up.config.conn_index = CHAIN_UP;
  up.config.recv_peers = chain->down;
  up.config.send_peers = &chain->up;
  up.config.direct = direct;
  up.flags = direct ? DIRECT_SEND : SEND;
  if (!is_last)
    up.flags |= direct ? DIRECT_RECV : RECV;

  down.config.conn_index = CHAIN_DOWN;
  down.config.recv_peers = &chain->up;
  down.config.send_peers = chain->down;
  down.src = BUF_NONE;
  down.dst = BUF_OUT;
  down.flags = is_head && !direct ? RECV : DIRECT_RECV;
  if (is_head)
    down.flags |= POST_OP;
  if (!is_last)
    down.flags |= DIRECT_SEND;
  run_both(&up, &down);
}
