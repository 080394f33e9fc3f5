/* SPDX-License-Identifier: Apache-2.0 */
/* PAT all-gather and reduce-scatter, used with one rank per node: runs the steps that NCCL's own
 * PatRSAlgorithm and PatAGAlgorithm give (src/include/collectives.h at tag v2.29.7-1), as kernels
 * on a GPU do, and proxies, which count the same steps. */

#include "tests/fake_cuda/nccl/block.h"

#define PAT_DIMENSIONS 32

/* ncclPatStep. A dimension d stands for the peers at distance 2^d; -1 means no peer. */
struct pat_step {
  int recv_dim, send_dim;
  int recv_offset, send_offset; /* within the slot, in elements */
  int step_offset, post_recv, post_send, count, last, flags;
  size_t in, out; /* in the user buffers, in elements */
};
enum { STEP_IS_SKIPPED = 2 }; /* PatSkipped, of the flags */

/* The two classes, whose first members are the same. */
struct pat_algorithm {
  size_t offset, end, total;
  int chunk, count, rank, n_ranks;
  int n_ranks_pow2;   /* n_ranks rounded up to a power of two */
  int post_frequency; /* steps that share one slot */
  int last_index;
  int parallel;  /* steps at a time, which peers do not see: here one */
  int aggregate; /* steps that are aggregated */
  int position;  /* the step that is being aggregated */
  int index;     /* within the aggregated steps */
  union {
    struct {
      int send_skip, step_offset;
      int delta; /* distance between aggregated steps */
      int scale, phase;
    } scatter;
    struct {
      int delta, scale, phase;
      int dimensions, value, bit_count[PAT_DIMENSIONS], bit_zeros[PAT_DIMENSIONS];
    } gather;
  };
};

static int log2_up(int n) {
  int l = 0;
  while (1 << l < n)
    l++;
  return l;
}

/* What the constructors have in common; sets the distance between aggregated steps. The part must
 * not be empty. */
static struct pat_algorithm construct(struct part part, const struct block *b, int size,
                                      int *delta) {
  struct pat_algorithm a = {
    .offset = (size_t)part.offset,
    .end = (size_t)(part.offset + part.length),
    .total = (size_t)part.count,
    .chunk = (int)part.chunk,
    .count = (int)MIN(part.chunk, part.length),
    .rank = b->rank,
    .n_ranks = b->n_ranks,
    .n_ranks_pow2 = 1 << log2_up(b->n_ranks),
    .parallel = 1,
    .aggregate = 1,
  };
  size_t slot_bytes = (size_t)(part.chunk * size), channel_bytes = (size_t)(part.length * size);
  while (slot_bytes / (channel_bytes * (size_t)a.aggregate) >= 2 && a.aggregate < a.n_ranks / 2)
    a.aggregate *= 2;
  a.post_frequency = a.aggregate;
  for (int d = NCCL_STEPS; d > 1 && a.aggregate < a.n_ranks / 2; d /= 2)
    a.aggregate *= 2;
  a.last_index = a.aggregate;
  *delta = a.n_ranks_pow2 / a.aggregate;
  return a;
}

static struct pat_algorithm make_scatter(struct part part, const struct block *b, int size) {
  int delta;
  struct pat_algorithm a = construct(part, b, size, &delta);
  a.scatter.delta = delta;
  a.scatter.scale = 1;
  a.position = delta - 1;
  return a;
}

/* The first position has the highest bit alone. */
static struct pat_algorithm make_gather(struct part part, const struct block *b, int size) {
  int delta;
  struct pat_algorithm a = construct(part, b, size, &delta);
  a.gather.delta = delta;
  a.gather.scale = a.aggregate / 2;
  a.gather.phase = a.gather.scale ? 2 : 1;
  a.last_index = a.gather.scale ? 1 : a.aggregate;
  a.gather.dimensions = log2_up(delta);
  for (int d = 0; d < a.gather.dimensions; d++) {
    a.gather.bit_count[d] = a.gather.dimensions - d - 1;
    a.gather.bit_zeros[d] = 1;
  }
  a.position = a.gather.value = delta / 2;
  a.gather.bit_count[a.gather.dimensions - 1] = delta / 2;
  return a;
}

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
      conn->fifo[to->step % NCCL_STEPS].size = ((ssize_t)p->send_offset + p->count) * x->r.size;
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

static void run_steps(struct block *b, const struct collective *c, struct reduction r,
                      bool is_reduce_scatter) {
  struct part part = collective_part(b, c, PROTO_SIMPLE, r.size);
  struct pat_run run = { .b = b, .c = c, .r = r, .is_reduce_scatter = is_reduce_scatter };
  struct pat_step step = { 0 };
  if (!part.length)
    return;
  struct pat_algorithm algorithm =
      is_reduce_scatter ? make_scatter(part, b, r.size) : make_gather(part, b, r.size);
  nccl_pat_next *next = is_reduce_scatter ? b->own->pat_reducescatter : b->own->pat_allgather;
  pat_connect(&run);
  do {
    next(&algorithm, &step);
    if (!(step.flags & STEP_IS_SKIPPED))
      pat_execute(&run, &step);
  } while (!step.last && !b->aborted);
}

void pat_allgather(struct block *b, const struct collective *c, struct reduction r, int proto) {
  run_steps(b, c, r, false);
}

void pat_reducescatter(struct block *b, const struct collective *c, struct reduction r, int proto) {
  run_steps(b, c, r, true);
}
