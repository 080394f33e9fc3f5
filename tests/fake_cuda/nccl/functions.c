/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds ncclDevFuncTable: the sorted set of primary functions, by the rules of NCCL's
 * src/device/generate.py (required_cuda, equivalent_primary, enumerate_func_rows). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int compare(const void *left, const void *right) {
  const struct nccl_function *a = left, *b = right;
  int order = strcmp(name_of(coll_names, a->coll), name_of(coll_names, b->coll));
  if (!order)
    order = strcmp(name_of(op_names, a->op), name_of(op_names, b->op));
  if (!order)
    order = strcmp(name_of(type_names, a->type), name_of(type_names, b->type));
  if (!order)
    order = strcmp(name_of(algo_names, a->algo), name_of(algo_names, b->algo));
  if (!order)
    order = strcmp(name_of(proto_names, a->proto), name_of(proto_names, b->proto));
  return order;
}

static bool is_integer(int type) {
  return type >= TYPE_I8 && type <= TYPE_U64;
}

static bool is_signed(int type) {
  return type == TYPE_I8 || type == TYPE_I32 || type == TYPE_I64;
}

/* Reductions that NVLS can do. */
static bool nvls_supports(int op, int type) {
  if (type >= TYPE_I32 && type <= TYPE_U64)
    return op == OP_SUM || op == OP_MINMAX;
  if (type == TYPE_F32 || type == TYPE_F64)
    return op == OP_SUM;
  if (type == TYPE_F16 || type == TYPE_BF16)
    return op == OP_SUM || op == OP_MINMAX;
  return false;
}

/* Adds the function that represents this combination, if the combination exists. */
static void add(struct nccl_function_table *t, const struct nccl_facts *facts, int coll, int op,
                int type, int algo, int proto) {
  bool nvls = algo == ALGO_NVLS || algo == ALGO_NVLS_TREE;
  if (proto != PROTO_SIMPLE && algo != ALGO_RING && algo != ALGO_TREE)
    return;
  if (op >= 0) {
    if (op == OP_SUMPOSTDIV && !is_integer(type))
      return;
    if (nvls && !nvls_supports(op, type))
      return;
    bool mapped = op == OP_SUM || op == OP_PROD || op == OP_PREMULSUM ||
                  (op == OP_MINMAX && !nvls) ||
                  (op == OP_SUMPOSTDIV && facts->post_div_sign_in_arg);
    if (mapped && is_signed(type))
      type++;
  }
  t->functions[t->count++] = (struct nccl_function){ coll, op, type, algo, proto };
}

static void add_all_protos(struct nccl_function_table *t, const struct nccl_facts *facts, int coll,
                           int op, int type, int algo) {
  for (int proto = PROTO_LL; proto <= PROTO_SIMPLE; proto++)
    add(t, facts, coll, op, type, algo, proto);
}

static void add_all_algos(struct nccl_function_table *t, const struct nccl_facts *facts, int coll,
                          int op, int type) {
  add_all_protos(t, facts, coll, op, type, ALGO_RING);
  if (coll == COLL_ALLREDUCE) {
    add_all_protos(t, facts, coll, op, type, ALGO_TREE);
    add_all_protos(t, facts, coll, op, type, ALGO_COLLNET_DIRECT);
    add_all_protos(t, facts, coll, op, type, ALGO_COLLNET_CHAIN);
    add_all_protos(t, facts, coll, op, type, ALGO_NVLS);
    add_all_protos(t, facts, coll, op, type, ALGO_NVLS_TREE);
  }
  if (coll == COLL_ALLGATHER || coll == COLL_REDUCESCATTER) {
    add_all_protos(t, facts, coll, op, type, ALGO_COLLNET_DIRECT);
    add_all_protos(t, facts, coll, op, type, ALGO_NVLS);
    if (facts->has_pat)
      add_all_protos(t, facts, coll, op, type, ALGO_PAT);
  }
}

void nccl_functions_build(struct nccl_function_table *t, const struct nccl_facts *facts) {
  static const int reducing[] = { COLL_ALLREDUCE, COLL_REDUCE, COLL_REDUCESCATTER };
  int types = facts->has_fp8 ? TYPE_COUNT : TYPE_F8E4M3;
  t->count = 0;
  t->functions[t->count++] = (struct nccl_function){ COLL_SENDRECV, -1, -1, -1, -1 };
  if (facts->has_all_gather_v)
    add_all_protos(t, facts, COLL_ALLGATHERV, -1, -1, ALGO_RING);
  add_all_algos(t, facts, COLL_ALLGATHER, -1, -1);
  add_all_algos(t, facts, COLL_BROADCAST, -1, -1);
  for (int i = 0; i < 3; i++) {
    for (int op = 0; op < OP_COUNT; op++) {
      for (int type = 0; type < types; type++)
        add_all_algos(t, facts, reducing[i], op, type);
    }
  }
  qsort(t->functions, t->count, sizeof *t->functions, compare);
  int unique = 0;
  for (int i = 0; i < t->count; i++) {
    if (!unique || compare(&t->functions[unique - 1], &t->functions[i]))
      t->functions[unique++] = t->functions[i];
  }
  t->count = unique;
}

void nccl_function_name(char *text, size_t size, const struct nccl_function *f) {
  snprintf(text, size, "%s %s %s %s %s", name_of(coll_names, f->coll),
           f->op < 0 ? "-" : op_names[f->op], f->type < 0 ? "-" : type_names[f->type],
           f->algo < 0 ? "-" : algo_names[f->algo], f->proto < 0 ? "-" : proto_names[f->proto]);
}
