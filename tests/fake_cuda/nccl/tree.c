/* SPDX-License-Identifier: Apache-2.0 */
/* Tree all-reduce (runTreeSplit of src/device/all_reduce.h): data is reduced up the tree and the
 * result is sent down. Below the root both directions run at the same time. */
#include "tests/fake_cuda/nccl/block.h"

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
