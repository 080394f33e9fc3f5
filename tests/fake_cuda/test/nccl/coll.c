/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives with one process per rank: every value of every result is checked.
 *
 *   coll -n RANKS [-p RANKS_PER_HOST] [-o OPERATIONS] [-t TYPES] [-r REDUCTIONS] [-s BYTES]
 *        [-i ROUNDS] [-g] [-u]
 *
 * Lists are separated by commas; "all" is every one. -g captures each operation in a CUDA graph,
 * launches it once per round, and runs the operation outside of the graph between launches. -u
 * registers the user buffers. Hosts are emulated through NCCL_HOSTID. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_cuda/test/lib/ranks.h"
#include "tests/fake_cuda/test/lib/values.h"

#define GUARD_BYTES 64
#define GUARD_VALUE 0xee

enum operation {
  ALL_REDUCE,
  ALL_GATHER,
  REDUCE_SCATTER,
  BROADCAST,
  REDUCE,
  SENDRECV,
  ALLTOALL,
  IN_PLACE,
  GROUP,
  CHAIN,
  N_OPERATIONS
};
static const struct {
  const char *name;
  bool is_reducing, is_wide_send, is_wide_recv;
} operations[] = {
  [ALL_REDUCE] = { "all_reduce", true, false, false },
  [ALL_GATHER] = { "all_gather", false, false, true },
  [REDUCE_SCATTER] = { "reduce_scatter", true, true, false },
  [BROADCAST] = { "broadcast", false, false, false },
  [REDUCE] = { "reduce", true, false, false },
  [SENDRECV] = { "sendrecv", false, false, false },
  [ALLTOALL] = { "alltoall", false, true, true },
  [IN_PLACE] = { "in_place", true, false, false }, /* all_reduce in place */
  [GROUP] = { "group", true, false, false },       /* four all_reduce in one group */
  [CHAIN] = { "chain", true, false, false },       /* broadcast, then all_reduce of the result */
};

static struct {
  int n_ranks, per_host, rounds;
  const char *operations, *types, *redops, *sizes;
  bool is_graph, is_registered;
} options = { .n_ranks = 2,
              .per_host = 1,
              .rounds = 1,
              .operations = "all",
              .types = "f32",
              .redops = "sum",
              .sizes = "8,65536,1048576" };

struct rank {
  int index;
  ncclComm_t comm;
  cudaStream_t stream;
  char *send, *recv;
};

struct test_case {
  enum operation operation;
  int type, redop;
  size_t count; /* elements per rank */
  char name[96];
};

static bool is_listed(const char *list, const char *word) {
  char padded[512], wanted[64];
  snprintf(padded, sizeof padded, ",%s,", list);
  snprintf(wanted, sizeof wanted, ",%s,", word);
  return !strcmp(list, "all") || strstr(padded, wanted);
}

/* ---- starting ---- */

static void start_point_to_point(const struct rank *x, const struct test_case *c) {
  ncclDataType_t t = (ncclDataType_t)c->type;
  size_t bytes = c->count * (size_t)type_sizes[c->type];
  int n = options.n_ranks;
  CHECK(ncclGroupStart());
  for (int r = 0; r < n; r++) {
    if (c->operation == ALLTOALL) {
      CHECK(ncclSend(x->send + (size_t)r * bytes, c->count, t, r, x->comm, x->stream));
      CHECK(ncclRecv(x->recv + (size_t)r * bytes, c->count, t, r, x->comm, x->stream));
    } else if (r == 0) {
      CHECK(ncclSend(x->send, c->count, t, (x->index + 1) % n, x->comm, x->stream));
      CHECK(ncclRecv(x->recv, c->count, t, (x->index + n - 1) % n, x->comm, x->stream));
    }
  }
  CHECK(ncclGroupEnd());
}

static void start_group(const struct rank *x, const struct test_case *c, ncclRedOp_t redop) {
  ncclDataType_t t = (ncclDataType_t)c->type;
  size_t size = (size_t)type_sizes[c->type];
  CHECK(ncclGroupStart());
  for (size_t k = 0; k < 4; k++) {
    size_t from = c->count * k / 4, to = c->count * (k + 1) / 4;
    CHECK(ncclAllReduce(x->send + from * size, x->recv + from * size, to - from, t, redop, x->comm,
                        x->stream));
  }
  CHECK(ncclGroupEnd());
}

static void start(const struct rank *x, const struct test_case *c) {
  static const ncclRedOp_t redops[] = { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg };
  ncclRedOp_t redop = redops[c->redop];
  ncclDataType_t t = (ncclDataType_t)c->type;
  size_t n = c->count;
  int root = options.n_ranks - 1;
  switch (c->operation) {
  case ALL_REDUCE:
    CHECK(ncclAllReduce(x->send, x->recv, n, t, redop, x->comm, x->stream));
    break;
  case IN_PLACE:
    CHECK(cudaMemcpyAsync(x->recv, x->send, n * (size_t)type_sizes[c->type],
                          cudaMemcpyDeviceToDevice, x->stream));
    CHECK(ncclAllReduce(x->recv, x->recv, n, t, redop, x->comm, x->stream));
    break;
  case ALL_GATHER:
    CHECK(ncclAllGather(x->send, x->recv, n, t, x->comm, x->stream));
    break;
  case REDUCE_SCATTER:
    CHECK(ncclReduceScatter(x->send, x->recv, n, t, redop, x->comm, x->stream));
    break;
  case BROADCAST:
    CHECK(ncclBroadcast(x->send, x->recv, n, t, root, x->comm, x->stream));
    break;
  case REDUCE:
    CHECK(ncclReduce(x->send, x->recv, n, t, redop, root, x->comm, x->stream));
    break;
  case CHAIN:
    CHECK(ncclBroadcast(x->send, x->recv, n, t, root, x->comm, x->stream));
    CHECK(ncclAllReduce(x->recv, x->recv, n, t, ncclMax, x->comm, x->stream));
    break;
  case GROUP:
    start_group(x, c, redop);
    break;
  default:
    start_point_to_point(x, c);
  }
}

/* ---- checking ---- */

/* Compares with a rank's data, or with the reduction of all ranks' if source is -1. */
static long check(const struct rank *x, const struct test_case *c, size_t at, size_t offset,
                  int source, int round) {
  const char *data = x->recv + at * (size_t)type_sizes[c->type];
  long wrong = 0;
  for (size_t i = 0; i < c->count; i++) {
    double want, limit = 0;
    if (source >= 0) {
      want = value_wrapped(value_element(source, offset + i, c->redop, round), c->type);
    } else {
      want = value_reduced(options.n_ranks, offset + i, c->redop, c->type, round);
      limit = value_tolerance(want, c->redop, c->type);
    }
    double got = value_get(data, c->type, i);
    if (fabs(want - got) <= limit)
      continue;
    if (!wrong++)
      printf("rank %d, %s, round %d: element %zu is %g instead of %g\n", x->index, c->name, round,
             i, got, want);
  }
  return wrong;
}

static long verify(const struct rank *x, const struct test_case *c, int round) {
  int n = options.n_ranks, root = n - 1;
  long wrong = 0;
  switch (c->operation) {
  case ALL_GATHER:
    for (int r = 0; r < n; r++)
      wrong += check(x, c, (size_t)r * c->count, 0, r, round);
    return wrong;
  case ALLTOALL:
    for (int r = 0; r < n; r++)
      wrong += check(x, c, (size_t)r * c->count, (size_t)x->index * c->count, r, round);
    return wrong;
  case REDUCE_SCATTER:
    return check(x, c, 0, (size_t)x->index * c->count, -1, round);
  case BROADCAST:
  case CHAIN:
    return check(x, c, 0, 0, root, round);
  case REDUCE:
    return x->index == root ? check(x, c, 0, 0, -1, round) : 0;
  case SENDRECV:
    return check(x, c, 0, 0, (x->index + n - 1) % n, round);
  default:
    return check(x, c, 0, 0, -1, round);
  }
}

static size_t received_bytes(const struct test_case *c) {
  size_t parts = operations[c->operation].is_wide_recv ? (size_t)options.n_ranks : 1;
  return c->count * parts * (size_t)type_sizes[c->type];
}

/* Nothing may be written behind the result. */
static long verify_guard(const struct rank *x, const struct test_case *c) {
  const unsigned char *guard = (unsigned char *)x->recv + received_bytes(c);
  for (int i = 0; i < GUARD_BYTES; i++) {
    if (guard[i] != GUARD_VALUE) {
      printf("rank %d, %s: written behind the result\n", x->index, c->name);
      return 1;
    }
  }
  return 0;
}

static void fill(const struct rank *x, const struct test_case *c, int round) {
  size_t parts = operations[c->operation].is_wide_send ? (size_t)options.n_ranks : 1;
  for (size_t i = 0; i < c->count * parts; i++)
    value_put(x->send, c->type, i, value_element(x->index, i, c->redop, round));
  memset(x->recv, GUARD_VALUE, received_bytes(c) + GUARD_BYTES);
}

/* ---- running ---- */

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* One round, from the graph if there is one; returns the time in microseconds. */
static double run_round(const struct rank *x, const struct test_case *c, cudaGraphExec_t graph,
                        int round) {
  fill(x, c, round);
  ranks_barrier();
  double begin = now_us();
  if (graph)
    CHECK(cudaGraphLaunch(graph, x->stream));
  else
    start(x, c);
  CHECK(cudaStreamSynchronize(x->stream));
  double time = now_us() - begin;
  ranks_add_wrong(verify(x, c, round) + verify_guard(x, c));
  return time;
}

static cudaGraphExec_t capture(const struct rank *x, const struct test_case *c) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(x->stream, cudaStreamCaptureModeGlobal));
  start(x, c);
  CHECK(cudaStreamEndCapture(x->stream, &graph));
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return exec;
}

/* NCCL before 2.24 returns the proxy operations of an operation outside of a graph to their pool
 * from a host function, while the caller may take new ones for the next operation (uploadProxyOps
 * in src/enqueue.cc): two such operations in a row, while a graph exists, corrupt the pool. */
static bool may_run_outside(const struct test_case *c) {
  int version;
  CHECK(ncclGetVersion(&version));
  return c->operation != CHAIN || version >= 22400;
}

static void run_case(const struct rank *x, const struct test_case *c) {
  cudaGraphExec_t graph = options.is_graph ? capture(x, c) : NULL;
  double best_us = INFINITY, sum_us = 0;
  long before = ranks_wrong();
  int round = 0;
  for (int i = 0; i < options.rounds; i++) {
    double time_us = run_round(x, c, graph, round++);
    best_us = fmin(best_us, time_us);
    sum_us += time_us;
    if (graph && may_run_outside(c))
      run_round(x, c, NULL, round++);
  }
  if (graph)
    CHECK(cudaGraphExecDestroy(graph));
  ranks_barrier();
  if (!x->index)
    printf("%-44s %s best %.1f us, mean %.1f us\n", c->name,
           ranks_wrong() > before ? "WRONG" : "ok", best_us, sum_us / options.rounds);
}

static void run_sizes(const struct rank *x, enum operation operation, int type, int redop) {
  char *copy = strdup(options.sizes), *state = NULL;
  for (char *t = strtok_r(copy, ",", &state); t; t = strtok_r(NULL, ",", &state)) {
    struct test_case c = { .operation = operation,
                           .type = type,
                           .redop = redop,
                           .count = strtoul(t, NULL, 0) / (size_t)type_sizes[type] };
    snprintf(c.name, sizeof c.name, "%s %s %s %zu B", operations[operation].name, type_names[type],
             operations[operation].is_reducing ? redop_names[redop] : "-",
             c.count * (size_t)type_sizes[type]);
    run_case(x, &c);
  }
  free(copy);
}

static void run_all(const struct rank *x) {
  for (int o = 0; o < N_OPERATIONS; o++) {
    for (int t = 0; t < N_TYPES && is_listed(options.operations, operations[o].name); t++) {
      for (int r = 0; r < N_REDOPS && is_listed(options.types, type_names[t]); r++) {
        if (is_listed(options.redops, redop_names[r]) && (operations[o].is_reducing || !r))
          run_sizes(x, (enum operation)o, t, r);
      }
    }
  }
}

static size_t largest_size(void) {
  size_t largest = 0;
  for (const char *s = options.sizes; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
    size_t size = strtoul(s, NULL, 0);
    largest = size > largest ? size : largest;
  }
  return largest;
}

static int run_rank(int index, void *arg) {
  struct rank x = { .index = index };
  size_t capacity = (largest_size() + 4096) * (size_t)options.n_ranks;
  void *handles[2];
  char host[32];
  (void)arg;
  snprintf(host, sizeof host, "host%d", index / options.per_host);
  setenv("NCCL_HOSTID", host, 1);
  ncclUniqueId id = ranks_unique_id(index);
  CHECK(cudaSetDevice(index % options.per_host));
  CHECK(ncclCommInitRank(&x.comm, options.n_ranks, id, index));
  CHECK(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc((void **)&x.send, capacity));
  CHECK(cudaMalloc((void **)&x.recv, capacity));
  if (options.is_registered) {
    CHECK(ncclCommRegister(x.comm, x.send, capacity, &handles[0]));
    CHECK(ncclCommRegister(x.comm, x.recv, capacity, &handles[1]));
  }
  run_all(&x);
  ranks_barrier();
  for (int i = 0; i < 2 && options.is_registered; i++)
    CHECK(ncclCommDeregister(x.comm, handles[i]));
  CHECK(ncclCommDestroy(x.comm));
  CHECK(cudaStreamDestroy(x.stream));
  CHECK(cudaFree(x.send));
  CHECK(cudaFree(x.recv));
  return 0;
}

static int parse_options(int argc, char **argv) {
  int option;
  while ((option = getopt(argc, argv, "n:p:o:t:r:s:i:gu")) != -1) {
    switch (option) {
    case 'n':
      options.n_ranks = atoi(optarg);
      break;
    case 'p':
      options.per_host = atoi(optarg);
      break;
    case 'o':
      options.operations = optarg;
      break;
    case 't':
      options.types = optarg;
      break;
    case 'r':
      options.redops = optarg;
      break;
    case 's':
      options.sizes = optarg;
      break;
    case 'i':
      options.rounds = atoi(optarg);
      break;
    case 'g':
      options.is_graph = true;
      break;
    case 'u':
      options.is_registered = true;
      break;
    default:
      return -1;
    }
  }
  return optind == argc && options.n_ranks > 0 && options.per_host > 0 ? 0 : -1;
}

int main(int argc, char **argv) {
  if (parse_options(argc, argv)) {
    fprintf(stderr, "usage: coll -n RANKS [-p RANKS_PER_HOST] [-o OPERATIONS] [-t TYPES]\n"
                    "            [-r REDUCTIONS] [-s BYTES] [-i ROUNDS] [-g] [-u]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  int failed = ranks_run(options.n_ranks, run_rank, NULL);
  printf("%s, %ld wrong values\n", failed || ranks_wrong() ? "FAILED" : "PASSED", ranks_wrong());
  return failed || ranks_wrong() ? 1 : 0;
}
