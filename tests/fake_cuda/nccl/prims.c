/* SPDX-License-Identifier: Apache-2.0 */
/* Send/receive primitives: the CPU form of src/device/prims_simple.h, prims_ll.h, prims_ll128.h.
 *
 * A connection is a ring of NCCL_STEPS slots. The sender owns `tail`, the receiver `head`; both
 * count steps. When a proxy thread sits between a kernel and the network, a connection also has a
 * fifo that tells the proxy the size of each slot. */
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"
#include "tests/fake_cuda/runtime/config.h"

/* ---- set-up ---- */

static enum direct_mode choose_direct(const struct prims *p, const struct prims_config *config,
                                      const struct nccl_conn *conn) {
  if (p->proto != PROTO_SIMPLE || !config->direct)
    return DIRECT_NONE;
  if (p->b->facts->direct_unregistered)
    return !conn->fifo && (conn->flags & CONN_WRITE) ? DIRECT_WRITE : DIRECT_NONE;
  if (!config->ipc_reg || !(conn->flags & (CONN_READ | CONN_WRITE)))
    return DIRECT_NONE;
  if (config->is_p2p)
    return conn->flags & CONN_WRITE ? DIRECT_WRITE : DIRECT_READ;
  return config->work->direct & CONN_READ ? DIRECT_READ : DIRECT_WRITE;
}

static bool uses_nic_buffer(const struct prims *p, const struct prims_config *config,
                            const struct nccl_conn *conn) {
  return p->proto == PROTO_SIMPLE && config->direct && config->net_reg && (conn->flags & CONN_NIC);
}

/* Steps are counted in whole chunks. */
static uint64_t round_step(const struct prims *p, uint64_t step) {
  uint64_t unit = (uint64_t)(p->slices * p->steps_per_slice);
  return (step + unit - 1) / unit * unit;
}

static void publish(const struct prims *p, void **slot, uintptr_t pointer) {
  if (p->b->facts->xor_pointer_exchange)
    pointer ^= (uintptr_t)slot;
  store_release(slot, pointer);
}

/* Waits for a published pointer and empties the slot. */
static char *accept_pointer(const struct prims *p, void **slot) {
  unsigned spins = 0;
  uintptr_t pointer;
  while (!(pointer = load_acquire(slot)) && !give_up(p->b, &spins))
    ;
  if (p->b->facts->xor_pointer_exchange)
    pointer ^= (uintptr_t)slot;
  return (char *)pointer;
}

/* Receivers that will be written to announce their buffer. */
static void announce_receive(struct prims *p, const struct prims_config *config, int i) {
  struct end *e = &p->recv[i];
  void **slot = e->conn->ptr_exchange;
  unsigned spins = 0;
  e->user_buffer = p->out;
  while (load_acquire(slot) && !give_up(p->b, &spins))
    ;
  uintptr_t pointer = (uintptr_t)p->out;
  if (!config->is_p2p && !p->b->facts->direct_unregistered) {
    int local = p->b->rank_to_local_rank[config->recv_peers[i]];
    pointer = config->work->recv_offset + config->work->recv_remote[local];
  }
  publish(p, slot, pointer);
}

/* Senders that will be read from announce their buffer and the reduction's argument. */
static void announce_send(struct prims *p, const struct prims_config *config, int i) {
  struct end *e = &p->send[i];
  void **slot = e->conn->ptr_exchange;
  volatile uint64_t *arg = e->conn->red_op_arg_exchange;
  unsigned spins = 0;
  e->user_buffer = p->n_recv ? p->out : p->in;
  while ((load_acquire(slot) || arg[0] || arg[1]) && !give_up(p->b, &spins))
    ;
  uintptr_t pointer = (uintptr_t)e->user_buffer;
  if (!config->is_p2p) {
    int local = p->b->rank_to_local_rank[config->send_peers[i]];
    const struct collective *c = config->work;
    pointer =
        p->n_recv ? c->recv_offset + c->recv_remote[local] : c->send_offset + c->send_remote[local];
  }
  arg[0] = 1ull << 32 | (uint32_t)p->red.arg;
  arg[1] = 1ull << 32 | (uint32_t)(p->red.arg >> 32);
  publish(p, slot, pointer);
}

/* Exchanges user buffer addresses with the neighbours (setDataPtrs). */
static void exchange_pointers(struct prims *p, const struct prims_config *config) {
  for (int i = 0; i < p->n_recv; i++) {
    if (p->recv[i].direct == DIRECT_WRITE && p->recv[i].conn->ptr_exchange)
      announce_receive(p, config, i);
  }
  for (int i = 0; i < p->n_send; i++) {
    if (p->send[i].direct == DIRECT_READ && p->send[i].conn->ptr_exchange)
      announce_send(p, config, i);
  }
  for (int i = 0; i < p->n_send; i++) {
    struct nccl_conn *conn = p->send[i].conn;
    if (p->send[i].direct == DIRECT_WRITE && conn->ptr_exchange) {
      p->send[i].user_buffer = accept_pointer(p, conn->ptr_exchange);
      store_release(conn->ptr_exchange, 0);
    }
  }
  for (int i = 0; i < p->n_recv; i++) {
    struct nccl_conn *conn = p->recv[i].conn;
    if (p->recv[i].direct == DIRECT_READ && conn->ptr_exchange) {
      p->recv[i].user_buffer = accept_pointer(p, conn->ptr_exchange);
      conn->red_op_arg_exchange[0] = 0;
      conn->red_op_arg_exchange[1] = 0;
      store_release(conn->ptr_exchange, 0);
    }
  }
}

void prims_init(struct prims *p, struct block *b, struct reduction red,
                const struct prims_config *config) {
  memset(p, 0, sizeof *p);
  p->b = b;
  p->red = red;
  p->proto = config->proto;
  p->slices = p->proto == PROTO_SIMPLE ? config->slices : 1;
  p->steps_per_slice = p->proto == PROTO_SIMPLE ? config->steps_per_slice : 1;
  p->in = config->in;
  p->out = config->out;
  p->is_p2p = config->is_p2p;
  p->step_elements = config->step_elements;
  if (!p->step_elements)
    p->step_elements = b->buff_sizes[PROTO_SIMPLE] / NCCL_STEPS / red.size;

  for (int i = 0; i < config->max_recv && config->recv_peers[i] >= 0; i++) {
    struct nccl_conn *conn = &b->peers[config->recv_peers[i]]->recv[config->conn_index];
    struct end *e = &p->recv[p->n_recv++];
    e->conn = conn;
    e->step = round_step(p, conn->step);
    e->direct = choose_direct(p, config, conn);
    if (p->proto == PROTO_SIMPLE)
      store_release(conn->head, e->step); /* return credits in case the step was rounded up */
    if (uses_nic_buffer(p, config, conn)) {
      p->recv_net = true;
      conn->fifo[e->step % NCCL_STEPS].size = 0;
    }
  }
  for (int i = 0; i < config->max_send && config->send_peers[i] >= 0; i++) {
    struct nccl_conn *conn = &b->peers[config->send_peers[i]]->send[config->conn_index];
    struct end *e = &p->send[p->n_send++];
    e->conn = conn;
    e->step = round_step(p, conn->step);
    e->direct = choose_direct(p, config, conn);
    if (uses_nic_buffer(p, config, conn))
      p->send_net = true;
  }
  exchange_pointers(p, config);
}

/* Saves the steps. The proxy marks a slot with size -1 when it has sent a registered user buffer;
 * the next kernel must not overwrite that buffer earlier. */
void prims_finish(struct prims *p) {
  for (int i = 0; i < p->n_recv; i++)
    p->recv[i].conn->step = p->recv[i].step;
  for (int i = 0; i < p->n_send; i++) {
    struct end *e = &p->send[i];
    unsigned spins = 0;
    e->conn->step = e->step;
    if (p->send_net) {
      uint64_t last = e->step - (uint64_t)p->steps_per_slice;
      ssize_t *size = &e->conn->fifo[last % NCCL_STEPS].size;
      while (__atomic_load_n(size, __ATOMIC_ACQUIRE) != -1 && !give_up(p->b, &spins))
        ;
    }
    if (e->direct == DIRECT_READ && p->is_p2p) {
      while (load_acquire(e->conn->tail) > load_acquire(e->conn->head) && !give_up(p->b, &spins))
        ;
    }
  }
}

void prims_give_steps(struct nccl_conn *conn, size_t steps) {
  conn->step += steps;
  store_release(conn->tail, conn->step);
}

void prims_await_steps(struct block *b, struct nccl_conn *conn, size_t steps) {
  unsigned spins = 0;
  conn->step += steps;
  store_release(conn->head, conn->step);
  while (load_acquire(conn->tail) < conn->step && !give_up(b, &spins))
    ;
}

/* ---- flow control ---- */

static void wait_for_credit(struct prims *p, const struct end *e) {
  uint64_t wanted = e->step + (uint64_t)p->steps_per_slice;
  unsigned spins = 0;
  while (load_acquire(e->conn->head) + NCCL_STEPS < wanted && !give_up(p->b, &spins))
    ;
}

static void wait_for_data(struct prims *p, const struct end *e) {
  uint64_t wanted = e->step + (uint64_t)p->steps_per_slice;
  unsigned spins = 0;
  while (load_acquire(e->conn->tail) < wanted && !give_up(p->b, &spins))
    ;
}

/* Senders tell the proxy the size of a slot. Receivers write it as well: with registered user
 * buffers the proxy resets it to -1 and takes any other value as "the kernel is ready". */
static void set_fifo_size(const struct end *e, ssize_t bytes) {
  if (e->conn->fifo)
    __atomic_store_n(&e->conn->fifo[e->step % NCCL_STEPS].size, bytes, __ATOMIC_RELAXED);
}

/* ---- LL and LL128 ---- */

#define LL_UNIT 2048    /* payload handled at a time, LL */
#define LL128_UNIT 1920 /* payload of a 2 KiB slice of 16 lines, LL128 */
#define LL128_LINES 16
#define LL128_PAYLOAD 120 /* of a 128 byte line; the last 8 bytes are the flag */
#define LL_CLEAN_MASK 0x7ffffff8u

/* At these steps all lines are written so that a stale flag can never match after wrap-around. */
static bool ll_cleans_at(uint64_t step) {
  return (step & LL_CLEAN_MASK) == LL_CLEAN_MASK;
}

/* LL: lines of {data, flag, data, flag}, 32 bits each. */
static void ll_read(struct prims *p, const char *from, uint64_t flag, size_t lines, uint64_t *to) {
  for (size_t i = 0; i < lines; i++) {
    const uint64_t *line = (const uint64_t *)(from + i * 16);
    uint64_t first, second;
    unsigned spins = 0;
    do {
      first = load_acquire(line);
      second = load_acquire(line + 1);
    } while (
        ((uint32_t)(first >> 32) != (uint32_t)flag || (uint32_t)(second >> 32) != (uint32_t)flag) &&
        !give_up(p->b, &spins));
    to[i] = (first & 0xffffffff) | second << 32;
  }
}

static void ll_write(char *to, uint64_t flag, size_t lines, const uint64_t *from) {
  for (size_t i = 0; i < lines; i++) {
    uint64_t *line = (uint64_t *)(to + i * 16);
    store_release(line, (from[i] & 0xffffffff) | flag << 32);
    store_release(line + 1, from[i] >> 32 | flag << 32);
  }
}

static void ll128_read(struct prims *p, const char *from, uint64_t flag, char *to) {
  for (int i = 0; i < LL128_LINES; i++) {
    const char *line = from + i * 128;
    unsigned spins = 0;
    while (load_acquire(line + LL128_PAYLOAD) != flag && !give_up(p->b, &spins))
      ;
    memcpy(to + i * LL128_PAYLOAD, line, LL128_PAYLOAD);
  }
}

/* All 16 flags are written even when the payload is shorter. */
static void ll128_write(char *to, uint64_t flag, const char *from) {
  for (int i = 0; i < LL128_LINES; i++) {
    char *line = to + i * 128;
    memcpy(line, from + i * LL128_PAYLOAD, LL128_PAYLOAD);
    store_release(line + LL128_PAYLOAD, flag);
  }
}

/* Waits for room in every outgoing slot and tells the proxy how many bytes it will hold. */
static void ll_begin_send(struct prims *p, size_t bytes, size_t slot_bytes) {
  for (int i = 0; i < p->n_send; i++) {
    struct end *e = &p->send[i];
    wait_for_credit(p, e);
    if (!e->conn->fifo)
      continue;
    ssize_t size;
    if (p->proto == PROTO_LL128)
      size = (ssize_t)((bytes + LL128_UNIT - 1) / LL128_UNIT * 2048);
    else if (ll_cleans_at(e->step))
      size = (ssize_t)slot_bytes;
    else
      size = (ssize_t)((bytes + 7) / 8 * 16);
    e->conn->fifo[e->step % NCCL_STEPS].size = size;
  }
}

static void ll_end_send(struct prims *p, size_t bytes, size_t slot_bytes) {
  for (int i = 0; i < p->n_send; i++) {
    struct end *e = &p->send[i];
    if (p->proto == PROTO_LL && ll_cleans_at(e->step)) {
      char *slot = e->conn->buffs[PROTO_LL] + (e->step % NCCL_STEPS) * slot_bytes;
      uint64_t empty = 0;
      for (size_t line = (bytes + 7) / 8; line < slot_bytes / 16; line++)
        ll_write(slot + line * 16, e->step + 1, 1, &empty);
    }
    e->step++;
    if (p->proto == PROTO_LL128 && e->conn->fifo)
      store_release(e->conn->tail, e->step);
  }
}

/* A transport whose bytes become visible in any order (see waits_for_proxy) must have all of a step
 * before a flag is believed. */
static void ll_begin_receive(struct prims *p) {
  for (int i = 0; waits_for_proxy && i < p->n_recv; i++) {
    if (p->recv[i].conn->fifo)
      wait_for_data(p, &p->recv[i]);
  }
}

static void ll_op(struct prims *p, int flags, enum buffer src, enum buffer dst, ssize_t src_index,
                  ssize_t dst_index, ssize_t count) {
  bool is_ll128 = p->proto == PROTO_LL128;
  size_t size = (size_t)p->red.size;
  size_t bytes = (size_t)count * size;
  size_t slot_bytes = (size_t)p->b->buff_sizes[p->proto] / NCCL_STEPS;
  size_t unit = is_ll128 ? LL128_UNIT : LL_UNIT;
  const char *from =
      src == BUF_NONE ? NULL : (src == BUF_IN ? p->in : p->out) + src_index * (ssize_t)size;
  char *to = dst == BUF_NONE ? NULL : (dst == BUF_IN ? p->in : p->out) + dst_index * (ssize_t)size;
  uint64_t sum[LL_UNIT / 8];
  uint64_t received[LL_UNIT / 8];

  if (flags & SEND)
    ll_begin_send(p, bytes, slot_bytes);
  if (flags & RECV)
    ll_begin_receive(p);
  for (size_t done = 0, k = 0; done < bytes; done += unit, k++) {
    size_t n = MIN(unit, bytes - done);
    size_t lines = (n + 7) / 8;
    bool have = false;
    if (from) {
      if (src == BUF_IN)
        reduce_pre(&p->red, sum, from + done, n / size);
      else
        memcpy(sum, from + done, n);
      have = true;
    }
    for (int i = 0; (flags & RECV) && i < p->n_recv; i++) {
      struct end *e = &p->recv[i];
      char *slot = e->conn->buffs[p->proto] + (e->step % NCCL_STEPS) * slot_bytes;
      uint64_t *target = have ? received : sum;
      if (is_ll128)
        ll128_read(p, slot + k * 2048, e->step + 1, (char *)target);
      else
        ll_read(p, slot + k * LL_UNIT * 2, e->step + 1, lines, target);
      if (have)
        reduce_pair(&p->red, sum, received, sum, n / size);
      have = true;
    }
    if (flags & POST_OP)
      reduce_post(&p->red, sum, n / size);
    for (int i = p->n_send - 1; (flags & SEND) && i >= 0; i--) {
      struct end *e = &p->send[i];
      char *slot = e->conn->buffs[p->proto] + (e->step % NCCL_STEPS) * slot_bytes;
      if (is_ll128)
        ll128_write(slot + k * 2048, e->step + 1, (char *)sum);
      else
        ll_write(slot + k * LL_UNIT * 2, e->step + 1, lines, sum);
    }
    if (to)
      memcpy(to + done, sum, n);
  }
  if (flags & RECV) {
    for (int i = 0; i < p->n_recv; i++)
      store_release(p->recv[i].conn->head, ++p->recv[i].step);
  }
  if (flags & SEND)
    ll_end_send(p, bytes, slot_bytes);
}

/* ---- Simple ---- */

/* The slot of a step; the proxy may place it elsewhere in the buffer (shared buffers). */
static void *slot_of(const struct nccl_conn *conn, uint64_t step) {
  char *base = conn->buffs[PROTO_SIMPLE];
  const struct nccl_fifo *fifo = conn->fifo ? &conn->fifo[step % NCCL_STEPS] : NULL;
  if (fifo && fifo->mode == FIFO_MODE_OFFSET)
    return base + __atomic_load_n(&fifo->offset, __ATOMIC_RELAXED);
  return base + (step % NCCL_STEPS) * (uint64_t)conn->step_size;
}

/* Where a send writes; NULL if the peer or the NIC takes the data from a user buffer. `at` is the
 * byte offset of this slice in the destination. */
static void *send_target(const struct prims *p, const struct end *e, int flags, ssize_t at) {
  bool direct = (flags & DIRECT_SEND) == DIRECT_SEND;
  if (direct && p->send_net && (e->conn->flags & CONN_NIC))
    return p->is_p2p || !(flags & RECV) ? NULL : p->out + at;
  if (direct && e->direct == DIRECT_WRITE)
    return e->user_buffer + at;
  if (direct && e->direct == DIRECT_READ)
    return NULL;
  return slot_of(e->conn, e->step);
}

/* Where a receive reads from. */
static void *recv_source(const struct prims *p, const struct end *e, int flags, ssize_t src_at,
                         ssize_t dst_at) {
  bool direct = (flags & DIRECT_RECV) == DIRECT_RECV;
  if (direct && p->recv_net && (e->conn->flags & CONN_NIC))
    return p->is_p2p ? NULL : p->out + src_at;
  if (direct && e->direct == DIRECT_READ)
    return e->user_buffer + src_at;
  if (direct && e->direct == DIRECT_WRITE)
    return e->user_buffer + dst_at;
  return slot_of(e->conn, e->step);
}

/* The data movement of one slice. */
static void move_slice(struct prims *p, int flags, enum buffer src, enum buffer dst, int n_sources,
                       void **sources, int n_targets, void **targets, size_t count) {
  if (!n_sources || !n_targets)
    return;
  bool direct_recv = (flags & DIRECT_RECV) == DIRECT_RECV;
  bool sends_too = (flags & SEND) && dst != BUF_NONE;
  if (direct_recv && src == BUF_NONE && sources[0] == targets[0]) {
    /* The data is already in place; only forward it. */
    if (sends_too && sources[0] != targets[1])
      reduce_copy(&p->red, false, false, 1, sources, n_targets - 1, targets + 1, count);
    return;
  }
  if (!sources[0] || !targets[0])
    return;
  if (sends_too && !targets[1])
    n_targets = 1;
  reduce_copy(&p->red, src == BUF_IN, flags & POST_OP, n_sources, sources, n_targets, targets,
              count);
}

void prims_op(struct prims *p, int flags, enum buffer src, enum buffer dst, ssize_t src_index,
              ssize_t dst_index, ssize_t count) {
  if (count < 0)
    count = 0;
  if (p->proto != PROTO_SIMPLE) {
    ll_op(p, flags, src, dst, src_index, dst_index, count);
    return;
  }
  ssize_t size = p->red.size;
  ssize_t slice = (count + 16 * p->slices - 1) / (16 * p->slices) * 16;
  slice = MAX(slice, p->step_elements * p->steps_per_slice / 32);
  ssize_t done = 0;
  for (int k = 0; k < p->slices; k++) {
    ssize_t n = MAX(MIN(slice, count - done), 0);
    ssize_t src_at = (src_index + done) * size;
    ssize_t dst_at = (dst_index + done) * size;
    void *sources[1 + MAX_PEERS], *targets[1 + MAX_PEERS];
    int n_sources = 0, n_targets = 0;
    if (src != BUF_NONE)
      sources[n_sources++] = (src == BUF_IN ? p->in : p->out) + src_at;
    if (dst != BUF_NONE)
      targets[n_targets++] = (dst == BUF_IN ? p->in : p->out) + dst_at;
    for (int i = 0; (flags & SEND) && i < p->n_send; i++) {
      struct end *e = &p->send[i];
      wait_for_credit(p, e);
      set_fifo_size(e, n * size);
      targets[n_targets++] = send_target(p, e, flags, dst_at);
    }
    for (int i = 0; (flags & RECV) && i < p->n_recv; i++) {
      wait_for_data(p, &p->recv[i]);
      set_fifo_size(&p->recv[i], n * size);
      sources[n_sources++] = recv_source(p, &p->recv[i], flags, src_at, dst_at);
    }
    if (n > 0 && !p->b->aborted && !p->net_offload)
      move_slice(p, flags, src, dst, n_sources, sources, n_targets, targets, (size_t)n);
    for (int i = 0; (flags & RECV) && i < p->n_recv; i++) {
      p->recv[i].step += (uint64_t)p->steps_per_slice;
      store_release(p->recv[i].conn->head, p->recv[i].step);
    }
    for (int i = 0; (flags & SEND) && i < p->n_send; i++) {
      p->send[i].step += (uint64_t)p->steps_per_slice;
      store_release(p->send[i].conn->tail, p->send[i].step);
    }
    done += slice;
  }
}

/* ---- parts, Simple only, between GPUs ---- */

static ssize_t part_place(int i, ssize_t part, int own) {
  return (i + (own >= 0 && i >= own)) * part;
}

void prims_scatter(struct prims *p, ssize_t at, ssize_t total, ssize_t part, int own) {
  for (int i = 0; i < p->n_send; i++) {
    struct end *e = &p->send[i];
    ssize_t place = part_place(i, part, own);
    ssize_t count = MIN(part, total - place);
    wait_for_credit(p, e);
    set_fifo_size(e, MAX(count, 0) * p->red.size);
    if (count > 0 && !p->b->aborted) {
      void *from = p->in + (at + place) * p->red.size;
      void *to = slot_of(e->conn, e->step);
      reduce_copy(&p->red, true, false, 1, &from, 1, &to, (size_t)count);
    }
    e->step += (uint64_t)p->steps_per_slice;
    store_release(e->conn->tail, e->step);
  }
}

void prims_gather(struct prims *p, ssize_t at, ssize_t total, ssize_t part, int own) {
  for (int i = 0; i < p->n_recv; i++) {
    struct end *e = &p->recv[i];
    ssize_t place = part_place(i, part, own);
    ssize_t count = MIN(part, total - place);
    wait_for_data(p, e);
    if (count > 0 && !p->b->aborted) {
      void *from = slot_of(e->conn, e->step);
      void *to = p->out + (at + place) * p->red.size;
      reduce_copy(&p->red, false, false, 1, &from, 1, &to, (size_t)count);
    }
    e->step += (uint64_t)p->steps_per_slice;
    store_release(e->conn->head, e->step);
  }
}
