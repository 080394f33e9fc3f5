/* SPDX-License-Identifier: Apache-2.0 */
/* Send/receive primitives of the protocols LL and LL128, whose data carry flags: the CPU form of
 * src/device/prims_ll.h and prims_ll128.h. */
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"
#include "tests/fake_cuda/runtime/config.h"

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
    prims_wait_for_credit(p, e);
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
      prims_wait_for_data(p, &p->recv[i]);
  }
}

void prims_ll_op(struct prims *p, int flags, enum buffer src, enum buffer dst, ssize_t src_index,
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
