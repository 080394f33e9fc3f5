/* SPDX-License-Identifier: Apache-2.0 */
/* PAT all-gather and reduce-scatter, used with one rank per node.
 *
 * The schedule has to agree step by step with PatRSAlgorithm and PatAGAlgorithm of
 * src/include/collectives.h, because the proxies count the same steps. How many steps the GPU runs
 * in parallel (parallelFactor) is invisible to the peers; here it is always one. */
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"

#define MAX_DIMENSIONS 32

/* One step. A dimension d stands for the peers at distance 2^d; -1 means no peer. */
struct pat_step {
  int recv_dim, send_dim;
  int step_offset;
  bool post_recv, post_send, skip, last;
  ssize_t recv_offset, send_offset; /* within the slot, in elements */
  ssize_t count;
  ssize_t in, out; /* in the user buffers, in elements */
};

struct pat_state {
  ssize_t offset, end, total, chunk, count;
  int rank, n_ranks;
  int n_ranks_pow2;      /* nRanks rounded up to a power of two */
  int post_frequency;    /* steps that share one slot */
  int aggregate;         /* steps that are aggregated */
  int aggregate_delta;   /* distance between aggregated steps */
  int dimensions;        /* log2 of aggregateDelta */
  int index, last_index; /* within the aggregated steps */
  int send_skip, step_offset;
  int position; /* the step that is being aggregated */
  int scale, phase;
  /* all-gather only: enumeration of the positions */
  int value;
  int bit_count[MAX_DIMENSIONS], bit_zeros[MAX_DIMENSIONS];
};

static int log2_up(int n) {
  int l = 0;
  while (1 << l < n)
    l++;
  return l;
}

static int first_bit(int i, int if_zero) {
  return i ? __builtin_ctz((unsigned)i) : if_zero;
}

/* Reverses the bits of i (mirrorInvert: of its complement) below max. */
static int mirror(int i, int max, bool invert) {
  int result = 0;
  for (int m = 1, mirrored = max / 2; m < max; m <<= 1, mirrored >>= 1) {
    bool set = (i & m) != 0;
    if (set != invert)
      result += mirrored;
  }
  return result;
}

/* Whether aggregated step i is the first one that goes to another peer. */
static bool is_new_peer(int i, int pow2) {
  return __builtin_popcount((unsigned)((i ^ (pow2 - 1)) + 1)) == 1;
}

/* Position of the data of the rank `distance` away. */
static ssize_t data_of(const struct pat_state *s, int distance) {
  return (ssize_t)((s->rank + s->n_ranks + distance) % s->n_ranks) * s->total + s->offset;
}

static ssize_t slot_part(const struct pat_state *s, int i) {
  return (i % s->post_frequency) * s->count;
}

static bool ends_slot(const struct pat_state *s, int i) {
  return (i + 1) % s->post_frequency == 0;
}

static void pat_init(struct pat_state *s, struct part part, const struct block *b, int size) {
  memset(s, 0, sizeof *s);
  s->offset = part.offset;
  s->end = part.offset + part.length;
  s->total = part.count;
  s->chunk = part.chunk;
  s->rank = b->rank;
  s->n_ranks = b->n_ranks;
  s->n_ranks_pow2 = 1 << log2_up(s->n_ranks);
  s->aggregate_delta = s->n_ranks_pow2;
  s->aggregate = 1;
  size_t slot_bytes = (size_t)(part.chunk * size);
  size_t channel_bytes = (size_t)(part.length * size);
  while (slot_bytes / (channel_bytes * (size_t)s->aggregate) >= 2 &&
         s->aggregate < s->n_ranks / 2) {
    s->aggregate *= 2;
    s->aggregate_delta /= 2;
  }
  s->post_frequency = s->aggregate;
  for (int d = NCCL_STEPS; d > 1 && s->aggregate < s->n_ranks / 2; d /= 2) {
    s->aggregate *= 2;
    s->aggregate_delta /= 2;
  }
  s->dimensions = log2_up(s->aggregate_delta);
}

/* ---- reduce-scatter ---- */

static void rs_begin_phase(struct pat_state *s) {
  s->index = 0;
  s->send_skip = 0;
  s->step_offset = 0;
  if (s->phase == 4)
    s->last_index = 1;
  else if (s->phase >= 2)
    s->last_index = s->aggregate / (2 * s->scale);
  else
    s->last_index = s->aggregate;
}

static void rs_begin_chunk(struct pat_state *s) {
  s->count = MIN(s->chunk, s->end - s->offset);
  s->phase = 0;
  s->scale = 1;
  s->position = s->aggregate_delta - 1;
  rs_begin_phase(s);
}

/* Nothing to receive in this step although there is something to send. */
static void rs_send_only(struct pat_step *p) {
  p->recv_dim = -1;
  p->recv_offset = -1;
  p->skip = false;
}

static void rs_phase0(struct pat_state *s, struct pat_step *p, bool full) {
  int i = s->index;
  int distance = mirror(i, s->last_index, true) * s->aggregate_delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->in = data_of(s, distance);
  p->recv_dim = -1;
  p->send_dim = 0;
  p->out = 0;
  p->recv_offset = -1;
  p->send_offset = slot_part(s, i);
  p->post_send = full;
}

static void rs_phase1(struct pat_state *s, struct pat_step *p, bool full) {
  int i = s->index;
  int distance = mirror(i, s->last_index, true) * s->aggregate_delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->recv_dim = first_bit(distance, s->n_ranks_pow2);
  p->send_offset = slot_part(s, i);
  p->recv_offset = p->send_offset;
  p->post_send = p->recv_dim == 0 && full;
  p->post_recv = full;
  distance -= 1 << p->recv_dim;
  p->in = data_of(s, distance);
  p->send_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  if (p->send_dim == -1) {
    p->send_offset = -1;
  } else if (s->position - (1 << p->recv_dim) == 0) {
    if (is_new_peer(i, s->aggregate)) {
      s->send_skip = i;
      s->step_offset = 0;
      p->step_offset = 0;
    }
    p->send_offset = slot_part(s, i - s->send_skip);
  }
  int recv_dim = p->recv_dim;
  if (distance < s->n_ranks && p->skip) {
    rs_send_only(p);
    p->post_recv = false;
  }
  if (recv_dim > 0 && ends_slot(s, i - s->send_skip) && !p->skip)
    s->step_offset++;
}

static void rs_phase2(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int distance = (2 * mirror(i, s->last_index, true) + 1) * s->scale * s->aggregate_delta + 1;
  p->skip = distance >= s->n_ranks;
  p->recv_dim = 0;
  p->post_send = i == s->last_index - 1 || ends_slot(s, i);
  distance--;
  if (distance < s->n_ranks && p->skip) {
    rs_send_only(p);
  } else if (!p->skip) {
    int recv_index = i + s->aggregate - s->aggregate / s->scale;
    p->post_recv = ends_slot(s, recv_index);
    p->recv_offset = slot_part(s, recv_index);
  }
  p->in = data_of(s, distance);
  p->send_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  p->send_offset = slot_part(s, i);
}

static void rs_phase3(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int distance = (2 * mirror(i, s->last_index, true) + 1) * s->scale * s->aggregate_delta;
  p->post_recv = i == s->last_index - 1 || ends_slot(s, i);
  p->skip = distance >= s->n_ranks;
  p->recv_dim = first_bit(distance, s->n_ranks_pow2);
  distance -= 1 << p->recv_dim;
  p->recv_offset = slot_part(s, i);
  p->in = data_of(s, distance);
  p->send_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  if (distance < s->n_ranks && p->skip) {
    rs_send_only(p);
    p->post_recv = false;
  }
  if (is_new_peer(i, s->aggregate / (2 * s->scale))) {
    s->send_skip = i;
    s->step_offset = 0;
    p->step_offset = 0;
  }
  int send_index = i - s->send_skip;
  if (ends_slot(s, send_index) && !p->skip)
    s->step_offset++;
  p->send_offset = p->send_dim >= 0 ? slot_part(s, send_index) : -1;
}

static void rs_phase4(struct pat_state *s, struct pat_step *p) {
  p->recv_dim = 0;
  p->send_dim = -1;
  p->in = (ssize_t)s->rank * s->total + s->offset;
  p->recv_offset = slot_part(s, s->aggregate - 1);
  p->send_offset = -1;
  p->post_recv = true;
  s->offset += s->chunk;
}

/* The phase that follows the one that has just ended. */
static int rs_next_phase(struct pat_state *s) {
  switch (s->phase) {
  case 0:
    if (s->position == 1)
      return s->aggregate > 1 ? 2 : 4;
    return 1;
  case 1:
    s->position--;
    return s->position % 2 == 1 ? 0 : 1;
  case 2:
    return 3;
  case 3:
    s->scale *= 2;
    return s->scale < s->aggregate ? 2 : 4;
  default:
    return 5;
  }
}

static void rs_next(struct pat_state *s, struct pat_step *p) {
  bool full = ends_slot(s, s->index) || s->index == s->last_index - 1;
  *p = (struct pat_step){ .count = s->count, .out = s->offset, .step_offset = s->step_offset };
  if (s->index >= s->last_index)
    p->skip = true;
  else if (s->phase == 0)
    rs_phase0(s, p, full);
  else if (s->phase == 1)
    rs_phase1(s, p, full);
  else if (s->phase == 2)
    rs_phase2(s, p);
  else if (s->phase == 3)
    rs_phase3(s, p);
  else
    rs_phase4(s, p);
  if (++s->index < s->last_index)
    return;
  bool chunk_done = s->phase == 4;
  s->phase = rs_next_phase(s);
  if (!chunk_done)
    rs_begin_phase(s);
  else if (s->offset >= s->end)
    p->last = true;
  else
    rs_begin_chunk(s);
}

/* ---- all-gather ---- */

/* Enumerates the positions in NCCL's order (nextAs). */
static int ag_next_position(struct pat_state *s) {
  for (int d = 0; d < s->dimensions; d++) {
    int bit = 1 << d;
    if (--s->bit_count[d] != 0)
      continue;
    s->value ^= bit;
    s->bit_count[d] = bit;
    if (s->value & bit)
      continue;
    s->bit_count[d] += first_bit(s->bit_zeros[d], s->dimensions) - 1;
    if (s->bit_count[d] == 0) {
      s->value ^= bit;
      s->bit_count[d] = bit;
    }
    s->bit_zeros[d]++;
  }
  return s->value;
}

static void ag_begin_phase(struct pat_state *s) {
  s->index = 0;
  s->last_index = s->phase >= 2 ? s->aggregate / (2 * s->scale) : s->aggregate;
}

static void ag_begin_chunk(struct pat_state *s) {
  s->count = MIN(s->chunk, s->end - s->offset);
  s->scale = s->aggregate / 2;
  s->phase = s->scale ? 2 : 1;
  s->value = 0;
  for (int d = 0; d < s->dimensions; d++) {
    s->bit_count[d] = s->dimensions - d;
    s->bit_zeros[d] = 1;
  }
  s->position = ag_next_position(s);
  ag_begin_phase(s);
}

static void ag_phase0(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int distance = i * s->aggregate_delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->out = data_of(s, distance);
  p->send_dim = -1;
  p->recv_dim = 0;
  p->in = 0;
  p->send_offset = -1;
  p->recv_offset = slot_part(s, i);
  p->post_recv = ends_slot(s, i) || (i + 1) * s->aggregate_delta + s->position >= s->n_ranks;
}

static void ag_phase1(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int delta = s->aggregate_delta;
  int distance = i * delta + s->position;
  p->skip = distance >= s->n_ranks;
  p->send_dim = first_bit(distance, s->n_ranks_pow2);
  distance -= 1 << p->send_dim;
  p->out = data_of(s, distance);
  p->recv_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  p->send_offset = slot_part(s, i);
  p->recv_offset = p->send_offset;
  p->post_send = ends_slot(s, i) || (i + 1) * delta + s->position >= s->n_ranks;
  p->post_recv =
      p->send_dim == 0 && (ends_slot(s, i) || (i + 1) * delta + s->position - 1 >= s->n_ranks);
  p->step_offset = p->send_dim == 0 ? 0 : i / s->post_frequency;
  if (p->recv_dim == -1) {
    p->recv_offset = -1;
    p->post_recv = false;
  } else if (s->position - (1 << p->send_dim) == 0) {
    int recv_index = (i * delta) >> (p->recv_dim + 1);
    bool last_of_peer = (((recv_index + 1) * 2 + 1) << p->recv_dim) >= s->n_ranks;
    p->recv_offset = slot_part(s, recv_index);
    p->post_recv = p->send_dim == 0 && (ends_slot(s, recv_index) || last_of_peer);
    p->step_offset = p->send_dim == 0 ? 0 : recv_index / s->post_frequency;
  }
  if (distance < s->n_ranks && p->send_dim == 0 && p->skip) {
    p->send_dim = -1;
    p->send_offset = -1;
    p->post_send = false;
    p->skip = false;
  }
}

static void ag_phase2(struct pat_state *s, struct pat_step *p) {
  int i = s->index;
  int stride = s->scale * s->aggregate_delta;
  int distance = (2 * i + 1) * stride;
  p->post_send = ends_slot(s, i) || (2 * (i + 1) + 1) * stride >= s->n_ranks;
  p->skip = distance >= s->n_ranks;
  p->send_dim = first_bit(distance, s->n_ranks_pow2);
  distance -= 1 << p->send_dim;
  p->send_offset = slot_part(s, i);
  p->step_offset = i / s->post_frequency;
  p->out = data_of(s, distance);
  p->recv_dim = distance ? first_bit(distance, s->n_ranks_pow2) : -1;
  if (p->recv_dim == -1) {
    p->recv_offset = -1;
  } else {
    int recv_index = (i * 2 * stride) >> (p->recv_dim + 1);
    p->recv_offset = slot_part(s, recv_index);
    p->step_offset = recv_index / s->post_frequency;
  }
}

/* Moves on to the next phase or chunk; true after the last one. */
static bool ag_advance(struct pat_state *s) {
  int ended = s->phase;
  bool stay = false;
  if (ended == 2) {
    s->scale /= 2;
    s->phase = s->scale ? 2 : 1;
  } else if (ended == 1) {
    s->phase = s->position % 2 == 1 ? 0 : 1;
    stay = s->phase == 0;
  } else {
    s->phase = 1;
  }
  if (ended != 2 && !stay)
    s->position = ag_next_position(s);
  if (ended == 0 && s->position == s->aggregate_delta / 2) {
    s->offset += s->chunk;
    if (s->offset >= s->end)
      return true;
    ag_begin_chunk(s);
  } else {
    ag_begin_phase(s);
  }
  return false;
}

static void ag_next(struct pat_state *s, struct pat_step *p) {
  *p = (struct pat_step){ .count = s->count, .in = s->offset };
  if (s->index >= s->last_index)
    p->skip = true;
  else if (s->phase == 0)
    ag_phase0(s, p);
  else if (s->phase == 1)
    ag_phase1(s, p);
  else
    ag_phase2(s, p);
  if (++s->index >= s->last_index)
    p->last = ag_advance(s);
}

/* ---- execution ---- */

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
  struct pat_peer recv[MAX_DIMENSIONS], send[MAX_DIMENSIONS];
  ssize_t local_accumulated;
};

static struct pat_peer pat_peer_of(struct nccl_conn *conn, int size) {
  return (struct pat_peer){ conn, conn->step, 0, conn->step_size / size };
}

/* Peers at distance 2^d: reduce-scatter sends up and receives from below, all-gather the reverse.
 */
static void pat_connect(struct pat_run *x) {
  struct block *b = x->b;
  for (int d = 0; d < MAX_DIMENSIONS - 1 && (1 << d) < b->n_ranks; d++) {
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
  if (to && p->post_send) {
    struct nccl_conn *conn = to->conn;
    if (conn->fifo)
      conn->fifo[to->step % NCCL_STEPS].size = (p->send_offset + p->count) * size;
    conn->step = ++to->step;
    store_release(conn->tail, to->step);
  }
  if (from && p->post_recv) {
    from->conn->step = ++from->step;
    store_release(from->conn->head, from->step);
  }
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
  pat_init(&state, part, b, r.size);
  if (is_reduce_scatter)
    rs_begin_chunk(&state);
  else
    ag_begin_chunk(&state);
  do {
    if (is_reduce_scatter)
      rs_next(&state, &step);
    else
      ag_next(&state, &step);
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
