/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce with a collective network (RunWorkColl<..., NCCL_ALGO_COLLNET_CHAIN and _DIRECT, ...>
 * of src/device/all_reduce.h). Some GPUs of a host are heads: a head hands what its host has summed
 * to the network, as to a peer with the number n_ranks, whose proxies have the plugin reduce it
 * with what the other hosts' heads hand over.
 *
 * Chain: the GPUs of a host are in a row, the first is the head of this channel. Direct, where
 * there is an NVSwitch: every GPU sends each head its part of the data, all heads work at the same
 * time. */
#include "tests/fake_cuda/nccl/block.h"

/* The connectors: from the network, and to it. */
enum { DOWN, UP };

/* A head that is the only GPU of its host, and registered buffers: the proxies do everything. */
static bool run_registered(struct block *b, const struct collective *c, int size, bool is_alone) {
  size_t step_bytes = b->facts->collnet_reg_step;
  size_t bytes = c->collnet.count * (size_t)size;
  size_t steps = step_bytes ? (bytes + step_bytes - 1) / step_bytes : 1;
  if (!c->collnet_reg_used || !is_alone)
    return false;
  struct nccl_peer *network = b->peers[b->n_ranks];
  prims_give_steps(&network->send[UP], steps);
  prims_await_steps(b, &network->recv[DOWN], steps);
  return true;
}

/* What passes have in common. `at_once` chunks of each channel are worked on at a time; this pass'
 * begins `first` chunks behind. */
static struct pass common_pass(struct block *b, const struct collective *c, struct reduction r,
                               int at_once, int first) {
  ssize_t chunk = c->collnet.chunk_count, count = (ssize_t)c->collnet.count;
  int channels = c->channel_hi - c->channel_lo + 1;
  ssize_t stride = chunk * channels * at_once;
  return (struct pass){ .b = b,
                        .r = r,
                        .config = { .proto = PROTO_SIMPLE,
                                    .slices = 1,
                                    .steps_per_slice = 1,
                                    .in = c->sendbuff,
                                    .out = c->recvbuff },
                        .chunk = chunk,
                        .chunks_at_once = at_once,
                        .begin = ((b->channel_id - c->channel_lo) * at_once + first) * chunk,
                        .stride = stride,
                        .n_chunks = (count + stride - 1) / stride,
                        .end = count };
}

static void connect_pass(struct pass *pass, int connector, const int *from, int max_from,
                         const int *to, int max_to) {
  pass->config.conn_index = connector;
  pass->config.recv_peers = from;
  pass->config.max_recv = max_from;
  pass->config.send_peers = to;
  pass->config.max_send = max_to;
}

void chain_allreduce(struct block *b, const struct collective *c, struct reduction r, int proto) {
  struct nccl_tree *chain = &b->collnet_chain;
  bool is_head = chain->up == b->n_ranks;
  bool is_last = chain->down[0] == -1;
  bool direct = b->facts->direct_reduce;
  struct pass up = common_pass(b, c, r, 1, 0);
  if (run_registered(b, c, r.size, is_head && is_last))
    return;

  struct pass down = up;
  connect_pass(&up, UP, chain->down, 1, &chain->up, 1);
  up.src = BUF_IN;
  up.dst = BUF_NONE;
  up.flags = direct ? DIRECT_SEND : SEND;
  if (!is_last)
    up.flags |= direct ? DIRECT_RECV : RECV;

  connect_pass(&down, DOWN, &chain->up, 1, chain->down, 1);
  down.src = BUF_NONE;
  down.dst = BUF_OUT;
  down.flags = is_head && !direct ? RECV : DIRECT_RECV;
  if (is_head)
    down.flags |= POST_OP;
  if (!is_last)
    down.flags |= DIRECT_SEND;

  struct pass both[] = { up, down };
  passes_run(both, 2);
}

/* No pass uses a peer's user buffer: where the release does, that is between GPUs only. */
void direct_allreduce(struct block *b, const struct collective *c, struct reduction r, int proto) {
  const struct nccl_direct *d = &b->collnet_direct;
  bool is_head = d->out != -1;
  bool has_up = d->up[0] != -1, has_down = d->down[0] != -1;
  struct pass passes[4];
  int count = 0;
  if (run_registered(b, c, r.size, is_head && !has_up && !has_down))
    return;
  if (has_up) {
    struct pass scatter = common_pass(b, c, r, d->n_heads, 0);
    scatter.own = d->head_rank;
    struct pass gather = scatter;
    scatter.kind = PASS_SCATTER;
    connect_pass(&scatter, UP, NULL, 0, d->up, MAX_PEERS);
    passes[count++] = scatter;
    gather.kind = PASS_GATHER;
    connect_pass(&gather, DOWN, d->up, MAX_PEERS, NULL, 0);
    passes[count++] = gather;
  }
  if (is_head) {
    struct pass reduce = common_pass(b, c, r, d->n_heads, d->head_rank);
    struct pass broadcast = reduce;
    connect_pass(&reduce, UP, d->down, MAX_PEERS, &d->out, 1);
    reduce.src = BUF_IN;
    reduce.dst = BUF_NONE;
    reduce.flags = has_down ? RECV | SEND : SEND;
    passes[count++] = reduce;
    connect_pass(&broadcast, DOWN, &d->out, 1, d->down, MAX_PEERS);
    broadcast.src = BUF_NONE;
    broadcast.dst = BUF_OUT;
    broadcast.flags = RECV | POST_OP | (has_down ? SEND : 0);
    passes[count++] = broadcast;
  }
  passes_run(passes, count);
}
