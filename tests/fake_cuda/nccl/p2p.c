/* SPDX-License-Identifier: Apache-2.0 */
/* Send and receive (src/device/sendrecv.h). Every direction of every item gets a thread, because
 * on a GPU they are separate groups of warps that progress independently. */
#include <pthread.h>
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"

#define MAX_WORKS 512
#define WHOLE_MESSAGE (1l << 30)

/* u32fp8Decode (src/include/bitops.h): a 5 bit exponent and 3 bit mantissa. */
static uint32_t decode_chunk_size(uint8_t x) {
  uint32_t exponent = x >> 3;
  uint32_t mantissa = (x & 7) | (exponent ? 8 : 0);
  return mantissa << (exponent ? exponent - 1 : 0);
}

/* ncclP2pChannelToPart; the number of channels is a power of two. */
static int part_of_channel(const struct block *b, const struct nccl_work_p2p *w) {
  int part = (b->channel_id - w->channel_base) & (w->n_p2p_channels - 1);
  if (!b->facts->part_bit_reversed)
    return part;
  int reversed = 0;
  for (int bit = 1; bit < w->n_p2p_channels; bit <<= 1) {
    reversed = reversed << 1 | (part & 1);
    part >>= 1;
  }
  return reversed;
}

struct transfer {
  struct block *b;
  struct nccl_work_p2p *work;
  bool is_send;
  pthread_t thread;
};

static void run_transfer(struct transfer *t) {
  struct block *b = t->b;
  struct nccl_work_p2p *w = t->work;
  bool net = w->flags >> (2 + !t->is_send) & 1;
  bool is_ll = w->flags >> !t->is_send & 1;
  bool one_step = net && b->facts->user_buffer_one_step;
  bool whole = !one_step && net;
  size_t bytes = t->is_send ? w->send_bytes : w->recv_bytes;
  size_t chunk = decode_chunk_size(t->is_send ? w->send_chunk_size : w->recv_chunk_size);
  struct reduction bytes_only = { .type = TYPE_I8, .op = OP_SUM, .size = 1 };
  struct prims_config config = { .proto = is_ll ? PROTO_LL : PROTO_SIMPLE,
                                 .slices = 1,
                                 .steps_per_slice = 1,
                                 .recv_peers = &w->recv_rank,
                                 .send_peers = &w->send_rank,
                                 .max_recv = !t->is_send,
                                 .max_send = t->is_send,
                                 .conn_index = 1,
                                 .in = w->send_addr,
                                 .out = w->recv_addr,
                                 .step_elements = whole ? WHOLE_MESSAGE : b->p2p_chunk_size,
                                 .is_p2p = true,
                                 .net_reg = net && !one_step };
  struct prims p;
  prims_init(&p, b, bytes_only, &config);
  if (whole)
    chunk = WHOLE_MESSAGE;
  if (one_step) {
    /* The proxy uses the user buffer; one empty step tells it to start. */
    p.send_net = t->is_send;
    p.net_offload = true;
    bytes = 0;
  }
  size_t at = 0;
  do {
    ssize_t n = (ssize_t)MIN(chunk, bytes - at);
    if (t->is_send)
      prims_op(&p, one_step ? SEND : DIRECT_SEND, BUF_IN, BUF_NONE, (ssize_t)at, (ssize_t)at, n);
    else
      prims_op(&p, one_step ? RECV : DIRECT_RECV, BUF_NONE, BUF_OUT, (ssize_t)at, (ssize_t)at, n);
    at += (size_t)n;
  } while (at < bytes);
  prims_finish(&p);
}

static void *transfer_thread(void *arg) {
  run_transfer(arg);
  return NULL;
}

/* Narrows one direction of an item to this channel's part; false if it has none
 * (ncclP2pPartBounds). */
static bool narrow(const struct block *b, struct nccl_work_p2p *w, bool is_send) {
  int parts = is_send ? w->n_send_channels : w->n_recv_channels;
  int part = part_of_channel(b, w);
  if (!parts || part >= parts)
    return false;
  size_t *bytes = is_send ? &w->send_bytes : &w->recv_bytes;
  char **address = is_send ? &w->send_addr : &w->recv_addr;
  size_t part_bytes = (*bytes / parts + (*bytes % parts != 0) + 4095) & ~(size_t)4095;
  size_t begin = MIN((size_t)part * part_bytes, *bytes);
  size_t end = MIN((size_t)(part + 1) * part_bytes, *bytes);
  *address += begin;
  *bytes = end - begin;
  return true;
}

void p2p_run(struct block *b, struct nccl_work_p2p *works, int count) {
  struct transfer transfers[2 * MAX_WORKS];
  int n = 0;
  for (int i = 0; i < count && i < MAX_WORKS; i++) {
    struct nccl_work_p2p *w = &works[i];
    bool has_recv = narrow(b, w, false);
    bool has_send = narrow(b, w, true);
    if (w->send_rank == b->rank) {
      if (has_send)
        memmove(w->recv_addr, w->send_addr, w->send_bytes);
      continue;
    }
    if (has_recv)
      transfers[n++] = (struct transfer){ .b = b, .work = w, .is_send = false };
    if (has_send)
      transfers[n++] = (struct transfer){ .b = b, .work = w, .is_send = true };
  }
  for (int i = 1; i < n; i++)
    pthread_create(&transfers[i].thread, NULL, transfer_thread, &transfers[i]);
  if (n)
    run_transfer(&transfers[0]);
  for (int i = 1; i < n; i++)
    pthread_join(transfers[i].thread, NULL);
}
