/* SPDX-License-Identifier: Apache-2.0 */
/* operation_call: two operations, and exchanges, are made of sends and receives. */
#include "tests/coll/operation_call.h"

#include "tests/coll/libs.h"

static ncclRedOp_t redop_of(enum pattern_redop redop) {
  static const ncclRedOp_t redops[] = {
    [PATTERN_SUM] = ncclSum, [PATTERN_PROD] = ncclProd, [PATTERN_MAX] = ncclMax,
    [PATTERN_MIN] = ncclMin, [PATTERN_AVG] = ncclAvg,   [PATTERN_NONE] = ncclSum
  };
  return redops[redop];
}

static void exchange_with_neighbours(const struct operation_call *c) {
  ncclDataType_t type = (ncclDataType_t)c->type;
  NCCL(ncclGroupStart());
  NCCL(ncclSend(c->send, c->count, type, (c->rank + 1) % c->ranks, c->comm, c->stream));
  NCCL(ncclRecv(c->recv, c->count, type, (c->rank + c->ranks - 1) % c->ranks, c->comm, c->stream));
  NCCL(ncclGroupEnd());
}

/* ncclAlltoAll came with 2.28; sends and receives do the same in every release. */
static void exchange_with_all(const struct operation_call *c) {
  ncclDataType_t type = (ncclDataType_t)c->type;
  size_t bytes = c->count * element_infos[c->type].size_bytes;
  NCCL(ncclGroupStart());
  for (int peer = 0; peer < c->ranks; peer++) {
    const char *send = (const char *)c->send + bytes * (size_t)peer;
    char *recv = (char *)c->recv + bytes * (size_t)peer;
    NCCL(ncclSend(send, c->count, type, peer, c->comm, c->stream));
    NCCL(ncclRecv(recv, c->count, type, peer, c->comm, c->stream));
  }
  NCCL(ncclGroupEnd());
}

static void exchange_transfers(const struct operation_call *c) {
  ncclDataType_t type = (ncclDataType_t)c->type;
  size_t size = element_infos[c->type].size_bytes;
  NCCL(ncclGroupStart());
  for (size_t i = 0; i < c->transfer_count; i++) {
    const struct operation_transfer *t = &c->transfers[i];
    if (t->is_send)
      NCCL(ncclSend((const char *)c->send + t->first * size, t->count, type, t->peer, c->comm,
                    c->stream));
    else
      NCCL(
          ncclRecv((char *)c->recv + t->first * size, t->count, type, t->peer, c->comm, c->stream));
  }
  NCCL(ncclGroupEnd());
}

void operation_run(const struct operation_call *c) {
  int type = (int)c->type;
  ncclRedOp_t redop = redop_of(c->redop);
  if (c->transfers) {
    exchange_transfers(c);
    return;
  }
  switch (c->operation) {
  case OPERATION_ALL_REDUCE:
    NCCL(ncclAllReduce(c->send, c->recv, c->count, type, redop, c->comm, c->stream));
    break;
  case OPERATION_ALL_GATHER:
    NCCL(ncclAllGather(c->send, c->recv, c->count, type, c->comm, c->stream));
    break;
  case OPERATION_REDUCE_SCATTER:
    NCCL(ncclReduceScatter(c->send, c->recv, c->count, type, redop, c->comm, c->stream));
    break;
  case OPERATION_BROADCAST:
    NCCL(ncclBroadcast(c->send, c->recv, c->count, type, c->root, c->comm, c->stream));
    break;
  case OPERATION_REDUCE:
    NCCL(ncclReduce(c->send, c->recv, c->count, type, redop, c->root, c->comm, c->stream));
    break;
  case OPERATION_SENDRECV:
    exchange_with_neighbours(c);
    break;
  default:
    exchange_with_all(c);
  }
}
