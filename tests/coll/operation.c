/* SPDX-License-Identifier: Apache-2.0 */
/* operation: what distinguishes one collective from another, and nothing else does. */
#include "tests/coll/operation.h"

#include <string.h>

#include "tests/coll/libs.h"

const struct operation_info operation_infos[OPERATIONS] = {
  [OPERATION_ALL_REDUCE] = { "all_reduce", true, false, true, .passes = 2 },
  [OPERATION_ALL_GATHER] = { "all_gather", false, false, true, .receives_all = true, .passes = 1 },
  [OPERATION_REDUCE_SCATTER] = { "reduce_scatter", true, false, true, .sends_all = true,
                                 .passes = 1 },
  [OPERATION_BROADCAST] = { "broadcast", false, true, true },
  [OPERATION_REDUCE] = { "reduce", true, true, true },
  [OPERATION_SENDRECV] = { "sendrecv", false, false, false },
  [OPERATION_ALLTOALL] = { "alltoall", false, false, false, true, true, 1 },
};

const char *const operation_redop_names[PATTERN_NONE + 1] = {
  [PATTERN_SUM] = "sum", [PATTERN_PROD] = "prod", [PATTERN_MAX] = "max",
  [PATTERN_MIN] = "min", [PATTERN_AVG] = "avg",   [PATTERN_NONE] = "none",
};

int operation_find(const char *name) {
  for (int i = 0; i < OPERATIONS; i++) {
    if (!strcmp(operation_infos[i].name, name))
      return i;
  }
  return -1;
}

int operation_redop_find(const char *name) {
  for (int i = 0; i < PATTERN_NONE; i++) {
    if (!strcmp(operation_redop_names[i], name))
      return i;
  }
  return -1;
}

/* ---- counts ---- */

struct operation_counts operation_count_call(enum operation operation, size_t call,
                                             unsigned type_size, int ranks) {
  const struct operation_info *info = &operation_infos[operation];
  size_t all = call * (size_t)ranks;
  return (struct operation_counts){
    .call = call,
    .send = info->sends_all ? all : call,
    .recv = info->receives_all ? all : call,
    .bytes = (info->sends_all || info->receives_all ? all : call) * type_size,
  };
}

struct operation_counts operation_count(enum operation operation, size_t bytes, unsigned type_size,
                                        int ranks) {
  const struct operation_info *info = &operation_infos[operation];
  size_t elements = bytes / type_size;
  return operation_count_call(
      operation, info->sends_all || info->receives_all ? elements / (size_t)ranks : elements,
      type_size, ranks);
}

double operation_bus_factor(enum operation operation, int ranks) {
  int passes = operation_infos[operation].passes;
  return passes ? (double)passes * (ranks - 1) / ranks : 1;
}

size_t operation_in_place_offset(enum operation operation, const struct operation_counts *counts,
                                 int rank) {
  const struct operation_info *info = &operation_infos[operation];
  return info->sends_all || info->receives_all ? counts->call * (size_t)rank : 0;
}

int operation_parts(enum operation operation, const struct operation_counts *counts, int rank,
                    int ranks, int root, struct operation_part *parts) {
  const struct operation_info *info = &operation_infos[operation];
  uint64_t mine = info->sends_all ? (uint64_t)counts->call * (uint64_t)rank : 0;
  for (int source = 0; info->receives_all && source < ranks; source++)
    parts[source] = (struct operation_part){ .source = source,
                                             .place = mine,
                                             .first = counts->call * (size_t)source,
                                             .length = counts->call };
  if (info->receives_all)
    return ranks;
  int source = info->has_redop  ? PATTERN_REDUCED
               : info->has_root ? root
                                : (rank + ranks - 1) % ranks;
  *parts = (struct operation_part){ .source = source, .place = mine, .length = counts->recv };
  /* Of a reduction to a root, other ranks' buffers are not significant. */
  return info->has_redop && info->has_root && rank != root ? 0 : 1;
}

/* ---- calls ---- */

static void transfer(const struct operation_case *c, const struct operation_rank *at, bool is_send,
                     int peer, size_t first, size_t count) {
  int type = (int)c->type;
  size_t offset = first * element_infos[type].size_bytes;
  if (is_send)
    NCCL(ncclSend((const char *)at->send + offset, count, type, peer, at->comm, at->stream));
  else
    NCCL(ncclRecv((char *)at->recv + offset, count, type, peer, at->comm, at->stream));
}

static void exchange(const struct operation_case *c, const struct operation_rank *at) {
  size_t count = c->counts.call;
  bool is_alltoall = !c->transfers && c->operation == OPERATION_ALLTOALL;
  NCCL(ncclGroupStart());
  for (size_t i = 0; c->transfers && i < c->transfer_count; i++) {
    const struct operation_transfer *t = &c->transfers[i];
    transfer(c, at, t->is_send, t->peer, t->first, t->count);
  }
  for (int peer = 0; is_alltoall && peer < at->ranks; peer++) {
    transfer(c, at, true, peer, count * (size_t)peer, count);
    transfer(c, at, false, peer, count * (size_t)peer, count);
  }
  if (!c->transfers && !is_alltoall) {
    transfer(c, at, true, (at->rank + 1) % at->ranks, 0, count);
    transfer(c, at, false, (at->rank + at->ranks - 1) % at->ranks, 0, count);
  }
  NCCL(ncclGroupEnd());
}

void operation_run(const struct operation_case *c, const struct operation_rank *at) {
  int type = (int)c->type, redop = (int)c->redop;
  size_t count = c->counts.call;
  switch (c->operation) {
  case OPERATION_ALL_REDUCE:
    NCCL(ncclAllReduce(at->send, at->recv, count, type, redop, at->comm, at->stream));
    break;
  case OPERATION_ALL_GATHER:
    NCCL(ncclAllGather(at->send, at->recv, count, type, at->comm, at->stream));
    break;
  case OPERATION_REDUCE_SCATTER:
    NCCL(ncclReduceScatter(at->send, at->recv, count, type, redop, at->comm, at->stream));
    break;
  case OPERATION_BROADCAST:
    NCCL(ncclBroadcast(at->send, at->recv, count, type, c->root, at->comm, at->stream));
    break;
  case OPERATION_REDUCE:
    NCCL(ncclReduce(at->send, at->recv, count, type, redop, c->root, at->comm, at->stream));
    break;
  default:
    exchange(c, at);
  }
}
