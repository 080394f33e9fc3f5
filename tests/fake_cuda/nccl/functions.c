/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of ncclDevFuncTable do, which has no names. */
#include <stdio.h>

#include "tests/fake_cuda/nccl/block.h"

static const char *const coll_names[] = { "Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                          "AllReduce", "SendRecv", "AllGatherV" };
static const char *const op_names[] = { "Sum", "Prod", "MinMax", "PreMulSum", "SumPostDiv" };
static const char *const type_names[] = { "i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                          "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2" };
static const char *const proto_names[] = { "LL", "LL128", "SIMPLE" };
static const char *const algo_names[] = {
  "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"
};

static const char *name_of(const char *const *names, int index) {
  return index < 0 ? "" : names[index];
}

/* ---- rows: ncclDevFuncId of NCCL's src/include/device.h counts them in this order, and
 * ncclDevFuncRowToId says which function a row's is; -1: there is none ---- */

static const int ring[] = { ALGO_RING };
static const int of_allreduce[] = { ALGO_TREE,          ALGO_RING, ALGO_COLLNET_DIRECT,
                                    ALGO_COLLNET_CHAIN, ALGO_NVLS, ALGO_NVLS_TREE };
/* Of AllGather and ReduceScatter. */
static const int of_parts[] = { ALGO_RING, ALGO_COLLNET_DIRECT, ALGO_NVLS, ALGO_PAT };

/* The rows of one collective with one reduction of one type. Signed and unsigned integers mostly
 * share a function, which is that of the last row, the unsigned type's. */
static const int *add(struct nccl_function_table *t, const int *row, struct nccl_function function,
                      const int *algos, int algo_count) {
  for (int i = 0; i < algo_count * PROTO_COUNT; i++) {
    int id = *row++;
    function.algo = algos[i / PROTO_COUNT];
    function.proto = i % PROTO_COUNT;
    if (id < 0)
      continue;
    t->functions[id] = function;
    t->count = MAX(t->count, id + 1);
  }
  return row;
}

static const int *add_reductions(struct nccl_function_table *t, const int *row, int types, int coll,
                                 const int *algos, int algo_count) {
  for (int i = 0; i < OP_COUNT * types; i++) {
    struct nccl_function function = { .coll = coll, .op = i / types, .type = i % types };
    row = add(t, row, function, algos, algo_count);
  }
  return row;
}

void nccl_functions_build(struct nccl_function_table *t, const struct nccl_facts *facts,
                          const int *row) {
  int types = facts->has_fp8 ? TYPE_COUNT : TYPE_F8E4M3, parts = facts->has_pat ? 4 : 3;
  t->count = *row + 1;
  t->functions[*row++] = (struct nccl_function){ COLL_SENDRECV, -1, -1, -1, -1 };
  row = add(t, row, (struct nccl_function){ COLL_ALLGATHER, -1, -1, 0, 0 }, of_parts, parts);
  row = add(t, row, (struct nccl_function){ COLL_BROADCAST, -1, -1, 0, 0 }, ring, 1);
  if (facts->has_all_gather_v)
    row = add(t, row, (struct nccl_function){ COLL_ALLGATHERV, -1, -1, 0, 0 }, ring, 1);
  row = add_reductions(t, row, types, COLL_ALLREDUCE, of_allreduce, 6);
  row = add_reductions(t, row, types, COLL_REDUCE, ring, 1);
  add_reductions(t, row, types, COLL_REDUCESCATTER, of_parts, parts);
}

void nccl_function_name(char *text, size_t size, const struct nccl_function *f) {
  snprintf(text, size, "%s %s %s %s %s", name_of(coll_names, f->coll),
           f->op < 0 ? "-" : op_names[f->op], f->type < 0 ? "-" : type_names[f->type],
           f->algo < 0 ? "-" : algo_names[f->algo], f->proto < 0 ? "-" : proto_names[f->proto]);
}
