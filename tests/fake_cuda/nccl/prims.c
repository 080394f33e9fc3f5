/* SPDX-License-Identifier: Apache-2.0 */
/* Send/receive primitives: the CPU form of src/device/prims_simple.h.
 *
 * A connection is a ring of NCCL_STEPS slots. The sender owns `tail`, the receiver `head`; both
 * count steps. When a proxy thread sits between a kernel and the network, a connection also has a
 * fifo that tells the proxy the size of each slot. */
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"

/* ---- set-up ---- */

static bool uses_nic_buffer(const struct prims *p, const struct prims_config *config,
                            const struct nccl_conn *conn) {
  return p->proto == PROTO_SIMPLE && config->net_reg && (conn->flags & CONN_NIC);
}

/* Steps are counted in whole chunks. */
static uint64_t round_step(const struct prims *p, uint64_t step) {
  uint64_t unit = (uint64_t)(p->slices * p->steps_per_slice);
  return (step + unit - 1) / unit * unit;
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
    if (uses_nic_buffer(p, config, conn))
      p->send_net = true;
  }
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

void prims_wait_for_credit(struct prims *p, const struct end *e) {
  uint64_t wanted = e->step + (uint64_t)p->steps_per_slice;
  unsigned spins = 0;
  while (load_acquire(e->conn->head) + NCCL_STEPS < wanted && !give_up(p->b, &spins))
    ;
}

void prims_wait_for_data(struct prims *p, const struct end *e) {
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

/* ---- Simple ---- */

/* The slot of a step; the proxy may place it elsewhere in the buffer (shared buffers). */
static void *slot_of(const struct nccl_conn *conn, uint64_t step) {
  char *base = conn->buffs[PROTO_SIMPLE];
  const struct nccl_fifo *fifo = conn->fifo ? &conn->fifo[step % NCCL_STEPS] : NULL;
  if (fifo && fifo->mode == FIFO_MODE_OFFSET)
    return base + __atomic_load_n(&fifo->offset, __ATOMIC_RELAXED);
  return base + (step % NCCL_STEPS) * (uint64_t)conn->step_size;
}

/* Where a send writes; NULL if the NIC takes the data from a user buffer. `at` is the byte offset
 * of this slice in the destination. */
static void *send_target(const struct prims *p, const struct end *e, int flags, ssize_t at) {
  bool direct = (flags & DIRECT_SEND) == DIRECT_SEND;
  if (direct && p->send_net && (e->conn->flags & CONN_NIC))
    return p->is_p2p || !(flags & RECV) ? NULL : p->out + at;
  return slot_of(e->conn, e->step);
}

/* Where a receive reads from. */
static void *recv_source(const struct prims *p, const struct end *e, int flags, ssize_t at) {
  bool direct = (flags & DIRECT_RECV) == DIRECT_RECV;
  if (direct && p->recv_net && (e->conn->flags & CONN_NIC))
    return p->is_p2p ? NULL : p->out + at;
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
    prims_ll_op(p, flags, src, dst, src_index, dst_index, count);
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
      prims_wait_for_credit(p, e);
      set_fifo_size(e, n * size);
      targets[n_targets++] = send_target(p, e, flags, dst_at);
    }
    for (int i = 0; (flags & RECV) && i < p->n_recv; i++) {
      prims_wait_for_data(p, &p->recv[i]);
      set_fifo_size(&p->recv[i], n * size);
      sources[n_sources++] = recv_source(p, &p->recv[i], flags, src_at);
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
    prims_wait_for_credit(p, e);
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
    prims_wait_for_data(p, e);
    if (count > 0 && !p->b->aborted) {
      void *from = slot_of(e->conn, e->step);
      void *to = p->out + (at + place) * p->red.size;
      reduce_copy(&p->red, false, false, 1, &from, 1, &to, (size_t)count);
    }
    e->step += (uint64_t)p->steps_per_slice;
    store_release(e->conn->head, e->step);
  }
}
