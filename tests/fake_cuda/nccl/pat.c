/* SPDX-License-Identifier: Apache-2.0 */
/* PAT all-gather and reduce-scatter, used with one rank per node: runs the schedule's steps. */
#include "tests/fake_cuda/nccl/pat.h"

struct pat_peer {
  struct nccl_conn *conn;
  uint64_t step;
  ssize_t accumulated; /* how far the slots hold partial sums (or were copied out) */
  ssize_t step_elements;
};

struct pat_run {
  struct block *b;
  const struct collective *c;
  struct reduction r;
  bool is_reduce_scatter;
  struct pat_peer recv[PAT_DIMENSIONS], send[PAT_DIMENSIONS];
  ssize_t local_accumulated;
};

static struct pat_peer pat_peer_of(struct nccl_conn *conn, int size) {
  return (struct pat_peer){ conn, conn->step, 0, conn->step_size / size };
}

/* Peers at distance 2^d: reduce-scatter sends up and receives from below, all-gather the reverse.
 */
static void pat_connect(struct pat_run *x) {
  struct block *b = x->b;
  for (int d = 0; d < PAT_DIMENSIONS - 1 && (1 << d) < b->n_ranks; d++) {
    int below = (b->rank - (1 << d) + b->n_ranks) % b->n_ranks;
    int above = (b->rank + (1 << d)) % b->n_ranks;
    int from = x->is_reduce_scatter ? below : above;
    int to = x->is_reduce_scatter ? above : below;
    x->recv[d] = pat_peer_of(&b->peers[from]->recv[0], x->r.size);
    x->send[d] = pat_peer_of(&b->peers[to]->send[0], x->r.size);
  }
}

static char *pat_slot(const struct pat_peer *peer, uint64_t step, ssize_t offset, int size) {
  ssize_t start = (ssize_t)(step % NCCL_STEPS) * peer->step_elements;
  return peer->conn->buffs[PROTO_SIMPLE] + (start + offset) * size;
}

/* Whether `position` goes beyond what was accumulated so far; remembers it. */
static bool pat_is_fresh(ssize_t *accumulated, ssize_t position) {
  if (*accumulated >= position)
    return false;
  *accumulated = position;
  return true;
}

/* Tells the peers what was sent and what was received. */
static void pat_post(const struct pat_run *x, const struct pat_step *p, struct pat_peer *from,
                     struct pat_peer *to) {
  if (to && p->post_send) {
    struct nccl_conn *conn = to->conn;
    if (conn->fifo)
      conn->fifo[to->step % NCCL_STEPS].size = (p->send_offset + p->count) * x->r.size;
    conn->step = ++to->step;
    store_release(conn->tail, to->step);
  }
  if (from && p->post_recv) {
    from->conn->step = ++from->step;
    store_release(from->conn->head, from->step);
  }
}

static void pat_execute(struct pat_run *x, const struct pat_step *p) {
  struct block *b = x->b;
  int size = x->r.size;
  struct pat_peer *from = p->recv_dim >= 0 ? &x->recv[p->recv_dim] : NULL;
  struct pat_peer *to = p->send_dim >= 0 ? &x->send[p->send_dim] : NULL;
  uint64_t recv_step =
      from ? from->step + (x->is_reduce_scatter ? 0 : (uint64_t)p->step_offset) : 0;
  uint64_t send_step = to ? to->step + (x->is_reduce_scatter ? (uint64_t)p->step_offset : 0) : 0;
  char *in = x->c->sendbuff + p->in * size;
  char *out = x->c->recvbuff + p->out * size;
  char *recv_slot = NULL, *send_slot = NULL;
  void *sources[2], *targets[2];
  int n_sources = 0, n_targets = 0;
  unsigned spins = 0;

  if (from) {
    while (load_acquire(from->conn->tail) < recv_step + 1 && !give_up(b, &spins))
      ;
    recv_slot = pat_slot(from, recv_step, p->recv_offset, size);
  }
  if (to) {
    while (load_acquire(to->conn->head) + NCCL_STEPS < send_step + 1 && !give_up(b, &spins))
      ;
    send_slot = pat_slot(to, send_step, p->send_offset, size);
  }
  if (x->is_reduce_scatter) {
    /* Destination = (received +) own data, or + what the destination holds already. */
    char *dst = to ? send_slot : out;
    ssize_t position = p->out + p->count;
    if (to)
      position = p->send_offset + p->count + (ssize_t)send_step * to->step_elements;
    bool fresh = pat_is_fresh(to ? &to->accumulated : &x->local_accumulated, position);
    if (from)
      sources[n_sources++] = recv_slot;
    sources[n_sources++] = fresh ? in : dst;
    targets[n_targets++] = dst;
  } else {
    ssize_t position = p->in + p->count;
    if (from)
      position = p->recv_offset + p->count + (ssize_t)recv_step * from->step_elements;
    sources[n_sources++] = from ? recv_slot : in;
    if (to)
      targets[n_targets++] = send_slot;
    bool fresh = pat_is_fresh(from ? &from->accumulated : &x->local_accumulated, position);
    if (fresh && out != (char *)sources[0])
      targets[n_targets++] = out;
  }
  if (!b->aborted && p->count > 0)
    reduce_copy(&x->r, false, false, n_sources, sources, n_targets, targets, (size_t)p->count);
  pat_post(x, p, from, to);
}

static void pat_collective(struct block *b, const struct collective *c, struct reduction r,
                           bool is_reduce_scatter) {
  struct part part = collective_part(b, c, PROTO_SIMPLE, r.size);
  struct pat_run run = { .b = b, .c = c, .r = r, .is_reduce_scatter = is_reduce_scatter };
  struct pat_state state;
  struct pat_step step;
  if (!part.length)
    return;
  pat_connect(&run);
  pat_schedule_begin(&state, part, b, r.size, is_reduce_scatter);
  do {
    pat_schedule_next(&state, &step);
    if (!step.skip)
      pat_execute(&run, &step);
  } while (!step.last && !b->aborted);
}

void pat_allgather(struct block *b, const struct collective *c, struct reduction r) {
  pat_collective(b, c, r, false);
}

void pat_reducescatter(struct block *b, const struct collective *c, struct reduction r) {
  pat_collective(b, c, r, true);
}
