/* SPDX-License-Identifier: Apache-2.0 */
/* Tree all-reduce (runTreeSplit of src/device/all_reduce.h): data is reduced up the tree and the
 * result is sent down. Below the root both directions run at the same time. */
#include <pthread.h>

#include "tests/fake_cuda/nccl/block.h"

#define ROOT_CHILDREN 2
#define CHILDREN 3

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

/* One direction, or both at the root: the same operation on every chunk. */
struct pass {
  struct block *b;
  const struct collective *c;
  struct reduction r;
  struct prims_config config;
  int flags;
  enum buffer src, dst;
};

static void run_pass(struct pass *pass) {
  struct part part = collective_part(pass->b, pass->c, pass->config.proto, pass->r.size);
  struct prims p;
  prims_init(&p, pass->b, pass->r, &pass->config);
  for (ssize_t start = 0; start < part.length; start += part.chunk) {
    ssize_t at = part.offset + start;
    ssize_t count = MIN(part.chunk, part.length - start);
    prims_op(&p, pass->flags, pass->src, pass->dst, at, at, count);
  }
  prims_finish(&p);
}

static void *pass_thread(void *arg) {
  run_pass(arg);
  return NULL;
}

void tree_allreduce(struct block *b, const struct collective *c, struct reduction r, int proto) {
  struct nccl_tree *tree = &b->tree;
  bool is_root = tree->up == -1;
  bool is_leaf = tree->down[0] == -1;
  int recv_reduce = b->facts->direct_reduce ? DIRECT_RECV : RECV;
  int send_reduce = b->facts->direct_reduce ? DIRECT_SEND : SEND;
  struct pass up = { .b = b, .c = c, .r = r, .config = tree_config(c, proto) };

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

  pthread_t thread;
  pthread_create(&thread, NULL, pass_thread, &down);
  run_pass(&up);
  pthread_join(thread, NULL);
}
