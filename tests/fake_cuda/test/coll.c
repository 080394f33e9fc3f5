/* SPDX-License-Identifier: Apache-2.0 */
/* Forks N ranks, runs collectives through NCCL's public API and checks every element.
 *
 *   test_coll RANKS OPERATIONS TYPES REDOPS SIZES [ITERATIONS]
 *
 * Lists are comma separated or "all". Every rank is a node of its own (NCCL_HOSTID); PER_NODE=k
 * puts k ranks, each with its own GPU, on a node. REG=1 registers the user buffers. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

static struct shared {
  ncclUniqueId id;
  pthread_barrier_t barrier;
  volatile long bad;
} * shared;
static int rank, n_ranks;

#define CHECK(call)                                                                                \
  do {                                                                                             \
    int result_ = (int)(call);                                                                     \
    if (result_) {                                                                                 \
      printf("[%d] %s:%d %s -> %d (%s)\n", rank, __FILE__, __LINE__, #call, result_,               \
             ncclGetLastError(NULL));                                                              \
      fflush(stdout);                                                                              \
      _exit(3);                                                                                    \
    }                                                                                              \
  } while (0)

enum { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, E4M3, E5M2, N_TYPES };
static const char *const type_names[] = { "i8",  "u8",  "i32", "u32",  "i64",  "u64",
                                          "f16", "f32", "f64", "bf16", "e4m3", "e5m2" };
static const int type_sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

enum { SUM, PROD, MAXOP, MINOP, AVG, N_REDOPS };
static const char *const redop_names[] = { "sum", "prod", "max", "min", "avg" };

enum {
  ALLREDUCE,
  ALLGATHER,
  REDUCESCATTER,
  BROADCAST,
  REDUCE,
  SENDRECV,
  ALLTOALL,
  INPLACE,
  GROUP,
  N_OPERATIONS
};
static const char *const operation_names[] = {
  "allreduce", "allgather", "reducescatter",     "broadcast", "reduce",
  "sendrecv",  "alltoall",  "allreduce_inplace", "group"
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int listed(const char *list, const char *word) {
  char padded[512], wanted[64];
  snprintf(padded, sizeof padded, ",%s,", list);
  snprintf(wanted, sizeof wanted, ",%s,", word);
  return !strcmp(list, "all") || strstr(padded, wanted);
}

/* ---- element values ---- */

static float fp8_to_float(uint8_t x, int mantissa, int bias) {
  int exponent = (x & 127) >> mantissa;
  int fraction = x & ((1 << mantissa) - 1);
  float v = exponent ? ldexpf((float)((1 << mantissa) + fraction), exponent - bias - mantissa)
                     : ldexpf((float)fraction, 1 - bias - mantissa);
  return x & 128 ? -v : v;
}

/* The nearest code, by search: independent of the emulator's encoder. The values in use are small
 * whole numbers, so results are remembered. */
static uint8_t float_to_fp8(float v, int mantissa, int bias) {
  static uint8_t known[2][64];
  uint8_t best = 0;
  int index = (int)v + 32;
  if (known[mantissa == 3][index])
    return known[mantissa == 3][index];
  int codes = mantissa == 3 ? 127 : 124;
  for (int code = 0; code < codes; code++) {
    float distance = fabsf(fp8_to_float((uint8_t)code, mantissa, bias) - fabsf(v));
    if (distance < fabsf(fp8_to_float(best, mantissa, bias) - fabsf(v)))
      best = (uint8_t)code;
  }
  known[mantissa == 3][index] = v < 0 ? best | 128 : best;
  return known[mantissa == 3][index];
}

static void put(void *buffer, int type, size_t i, double v) {
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  switch (type) {
  case I8:
    ((int8_t *)buffer)[i] = (int8_t)v;
    break;
  case U8:
    ((uint8_t *)buffer)[i] = (uint8_t)(int)v;
    break;
  case I32:
    ((int32_t *)buffer)[i] = (int32_t)v;
    break;
  case U32:
    ((uint32_t *)buffer)[i] = (uint32_t)(int)v;
    break;
  case I64:
    ((int64_t *)buffer)[i] = (int64_t)v;
    break;
  case U64:
    ((uint64_t *)buffer)[i] = (uint64_t)(int64_t)v;
    break;
  case F16:
    ((_Float16 *)buffer)[i] = (_Float16)v;
    break;
  case F32:
    ((float *)buffer)[i] = f;
    break;
  case F64:
    ((double *)buffer)[i] = v;
    break;
  case BF16:
    ((uint16_t *)buffer)[i] = (uint16_t)(bits >> 16);
    break; /* exact for our values */
  case E4M3:
    ((uint8_t *)buffer)[i] = float_to_fp8(f, 3, 7);
    break;
  case E5M2:
    ((uint8_t *)buffer)[i] = float_to_fp8(f, 2, 15);
    break;
  }
}

static double get(const void *buffer, int type, size_t i) {
  uint32_t bits;
  float f;
  switch (type) {
  case I8:
    return ((const int8_t *)buffer)[i];
  case U8:
    return ((const uint8_t *)buffer)[i];
  case I32:
    return ((const int32_t *)buffer)[i];
  case U32:
    return ((const uint32_t *)buffer)[i];
  case I64:
    return (double)((const int64_t *)buffer)[i];
  case U64:
    return (double)((const uint64_t *)buffer)[i];
  case F16:
    return (double)((const _Float16 *)buffer)[i];
  case F32:
    return ((const float *)buffer)[i];
  case F64:
    return ((const double *)buffer)[i];
  case BF16:
    bits = (uint32_t)((const uint16_t *)buffer)[i] << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
  case E4M3:
    return fp8_to_float(((const uint8_t *)buffer)[i], 3, 7);
  default:
    return fp8_to_float(((const uint8_t *)buffer)[i], 2, 15);
  }
}

/* What a value becomes when it is stored in an integer type. */
static double wrapped(double v, int type) {
  switch (type) {
  case I8:
    return (int8_t)(int)v;
  case U8:
    return (uint8_t)(int)v;
  case U32:
    return (uint32_t)(int64_t)v;
  case U64:
    return v < 0 ? (double)(uint64_t)(int64_t)v : v;
  default:
    return v;
  }
}

static double element(int of_rank, size_t i, int redop) {
  unsigned h = (unsigned)(i * 2654435761u) ^ ((unsigned)of_rank * 40503u);
  h ^= h >> 13;
  if (redop == PROD)
    return 1 + h % 2;
  return (double)(h % 9) - (redop == SUM || redop == AVG ? 0 : 4);
}

static double expected(size_t i, int redop, int type) {
  double a = wrapped(element(0, i, redop), type);
  for (int r = 1; r < n_ranks; r++) {
    double b = wrapped(element(r, i, redop), type);
    switch (redop) {
    case PROD:
      a *= b;
      break;
    case MAXOP:
      a = fmax(a, b);
      break;
    case MINOP:
      a = fmin(a, b);
      break;
    default:
      a += b;
    }
  }
  if (redop == AVG) {
    a /= n_ranks;
    return type < F16 ? floor(a) : a;
  }
  return redop == MAXOP || redop == MINOP ? a : wrapped(a, type);
}

static double tolerance(double value, int redop, int type) {
  double v = fabs(value);
  if (type >= E4M3)
    return redop == AVG ? 0.3 * v + 0.05 : (type == E5M2 ? 0.3 : 0.13) * v;
  if (redop != AVG || type < F16)
    return 0;
  return v * (type == BF16 ? 0.03 : type == F16 ? 0.004 : 1e-5) + 1e-3;
}

/* Compares with rank source's data, or with the reduction if source is -1. */
static long check(const void *buffer, size_t count, int type, size_t offset, int redop, int source,
                  const char *what) {
  long bad = 0;
  for (size_t i = 0; i < count; i++) {
    double want = source >= 0 ? wrapped(element(source, offset + i, redop), type)
                              : expected(offset + i, redop, type);
    double limit = source >= 0 ? 0 : tolerance(want, redop, type);
    double got = get(buffer, type, i);
    if (fabs(want - got) <= limit)
      continue;
    if (!bad)
      printf("[%d] %s mismatch at %zu of %zu: got %g want %g\n", rank, what, i, count, got, want);
    bad++;
  }
  return bad;
}

/* ---- running ---- */

struct run {
  ncclComm_t comm;
  cudaStream_t stream;
  char *send, *recv;
};

static void start(struct run *x, int operation, size_t n, int type, ncclRedOp_t redop) {
  size_t size = (size_t)type_sizes[type];
  ncclDataType_t t = (ncclDataType_t)type;
  int root = n_ranks - 1;
  switch (operation) {
  case ALLREDUCE:
    CHECK(ncclAllReduce(x->send, x->recv, n, t, redop, x->comm, x->stream));
    break;
  case INPLACE:
    CHECK(ncclAllReduce(x->recv, x->recv, n, t, redop, x->comm, x->stream));
    break;
  case ALLGATHER:
    CHECK(ncclAllGather(x->send, x->recv, n, t, x->comm, x->stream));
    break;
  case REDUCESCATTER:
    CHECK(ncclReduceScatter(x->send, x->recv, n, t, redop, x->comm, x->stream));
    break;
  case BROADCAST:
    CHECK(ncclBroadcast(x->send, x->recv, n, t, root, x->comm, x->stream));
    break;
  case REDUCE:
    CHECK(ncclReduce(x->send, x->recv, n, t, redop, root, x->comm, x->stream));
    break;
  case SENDRECV:
    CHECK(ncclGroupStart());
    CHECK(ncclSend(x->send, n, t, (rank + 1) % n_ranks, x->comm, x->stream));
    CHECK(ncclRecv(x->recv, n, t, (rank + n_ranks - 1) % n_ranks, x->comm, x->stream));
    CHECK(ncclGroupEnd());
    break;
  case ALLTOALL:
    CHECK(ncclGroupStart());
    for (int r = 0; r < n_ranks; r++) {
      CHECK(ncclSend(x->send + (size_t)r * n * size, n, t, r, x->comm, x->stream));
      CHECK(ncclRecv(x->recv + (size_t)r * n * size, n, t, r, x->comm, x->stream));
    }
    CHECK(ncclGroupEnd());
    break;
  case GROUP:
    CHECK(ncclGroupStart());
    for (size_t k = 0; k < 4; k++) {
      size_t from = n * k / 4, to = n * (k + 1) / 4;
      CHECK(ncclAllReduce(x->send + from * size, x->recv + from * size, to - from, t, redop,
                          x->comm, x->stream));
    }
    CHECK(ncclGroupEnd());
    break;
  }
}

/* Waits for the stream while watching the communicator for asynchronous errors. */
static void finish(struct run *x) {
  cudaError_t error;
  while ((error = cudaStreamQuery(x->stream)) == cudaErrorNotReady) {
    ncclResult_t async;
    CHECK(ncclCommGetAsyncError(x->comm, &async));
    if (async) {
      printf("[%d] async error %d (%s)\n", rank, async, ncclGetLastError(x->comm));
      double begin = now();
      int result = ncclCommAbort(x->comm);
      printf("[%d] ncclCommAbort -> %d in %.3f s, stream %d\n", rank, result, now() - begin,
             cudaStreamSynchronize(x->stream));
      fflush(stdout);
      _exit(4);
    }
    usleep(50);
  }
  CHECK(error);
}

static long verify(struct run *x, int operation, size_t n, int type, int redop, const char *what) {
  size_t bytes = n * (size_t)type_sizes[type];
  long bad = 0;
  switch (operation) {
  case ALLGATHER:
    for (int r = 0; r < n_ranks; r++)
      bad += check(x->recv + (size_t)r * bytes, n, type, 0, redop, r, what);
    return bad;
  case ALLTOALL:
    for (int r = 0; r < n_ranks; r++)
      bad += check(x->recv + (size_t)r * bytes, n, type, (size_t)rank * n, redop, r, what);
    return bad;
  case REDUCESCATTER:
    return check(x->recv, n, type, (size_t)rank * n, redop, -1, what);
  case BROADCAST:
    return check(x->recv, n, type, 0, redop, n_ranks - 1, what);
  case REDUCE:
    return rank == n_ranks - 1 ? check(x->recv, n, type, 0, redop, -1, what) : 0;
  case SENDRECV:
    return check(x->recv, n, type, 0, redop, (rank + n_ranks - 1) % n_ranks, what);
  default:
    return check(x->recv, n, type, 0, redop, -1, what);
  }
}

static void run_case(struct run *x, int operation, size_t bytes, int type, int redop,
                     int iterations) {
  size_t size = (size_t)type_sizes[type];
  size_t n = bytes / size ? bytes / size : 1;
  int reduces = operation == ALLREDUCE || operation == REDUCESCATTER || operation == REDUCE ||
                operation == INPLACE || operation == GROUP;
  int wide_send = operation == REDUCESCATTER || operation == ALLTOALL;
  int wide_recv = operation == ALLGATHER || operation == ALLTOALL;
  static const ncclRedOp_t redops[] = { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg };
  double best = 1e9;
  char what[128];
  snprintf(what, sizeof what, "%s %s %s %zu B", operation_names[operation], type_names[type],
           reduces ? redop_names[redop] : "-", n * size);
  for (size_t i = 0; i < n * (size_t)(wide_send ? n_ranks : 1); i++)
    put(x->send, type, i, element(rank, i, redop));
  for (int it = 0; it < iterations; it++) {
    if (it == 0)
      memset(x->recv, 0xee, n * size * (size_t)(wide_recv ? n_ranks : 1));
    if (operation == INPLACE)
      memcpy(x->recv, x->send, n * size);
    pthread_barrier_wait(&shared->barrier);
    double begin = now();
    start(x, operation, n, type, redops[redop]);
    finish(x);
    best = fmin(best, now() - begin);
  }
  long bad = verify(x, operation, n, type, redop, what);
  __sync_fetch_and_add(&shared->bad, bad);
  if (!rank)
    printf("%-40s %s  %.1f us  algbw %.3f GB/s\n", what, bad ? "BAD" : "ok", best * 1e6,
           (double)(n * size) / best / 1e9);
  fflush(stdout);
}

static int run_rank(const char *operations, const char *types, const char *redops,
                    const char *sizes, int iterations, int per_node) {
  struct run x;
  char text[64];
  void *handles[2] = { NULL, NULL };
  int registered = getenv("REG") != NULL;
  snprintf(text, sizeof text, "emunode%d", rank / per_node);
  setenv("NCCL_HOSTID", text, 1);
  double begin = now();
  if (rank == 0)
    CHECK(ncclGetUniqueId(&shared->id));
  pthread_barrier_wait(&shared->barrier);
  CHECK(cudaSetDevice(rank % per_node));
  CHECK(ncclCommInitRank(&x.comm, n_ranks, shared->id, rank));
  if (!rank)
    printf("init %.3f s\n", now() - begin);
  CHECK(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));

  size_t largest = 0;
  size_t list[32];
  int n_sizes = 0;
  char *copy = strdup(sizes), *state;
  for (char *t = strtok_r(copy, ",", &state); t; t = strtok_r(NULL, ",", &state)) {
    list[n_sizes] = strtoul(t, NULL, 0);
    largest = list[n_sizes] > largest ? list[n_sizes] : largest;
    n_sizes++;
  }
  size_t capacity = (largest + 4096) * (size_t)n_ranks;
  CHECK(cudaMalloc((void **)&x.send, capacity));
  CHECK(cudaMalloc((void **)&x.recv, capacity));
  if (registered) {
    CHECK(ncclCommRegister(x.comm, x.send, capacity, &handles[0]));
    CHECK(ncclCommRegister(x.comm, x.recv, capacity, &handles[1]));
  }
  for (int o = 0; o < N_OPERATIONS; o++) {
    int reduces = o == ALLREDUCE || o == REDUCESCATTER || o == REDUCE || o == INPLACE || o == GROUP;
    for (int t = 0; t < N_TYPES && listed(operations, operation_names[o]); t++) {
      for (int r = 0; r < N_REDOPS && listed(types, type_names[t]); r++) {
        if (!listed(redops, redop_names[r]) || (!reduces && r))
          continue;
        for (int s = 0; s < n_sizes; s++)
          run_case(&x, o, list[s], t, r, iterations);
      }
    }
  }
  pthread_barrier_wait(&shared->barrier);
  for (int i = 0; i < 2 && registered; i++)
    CHECK(ncclCommDeregister(x.comm, handles[i]));
  CHECK(ncclCommDestroy(x.comm));
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: %s ranks operations types redops sizes [iterations]\n", argv[0]);
    return 2;
  }
  n_ranks = atoi(argv[1]);
  int per_node = getenv("PER_NODE") ? atoi(getenv("PER_NODE")) : 1;
  int iterations = argc > 6 ? atoi(argv[6]) : 1;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t attr;
  pthread_barrierattr_init(&attr);
  pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attr, (unsigned)n_ranks);
  for (rank = 0; rank < n_ranks; rank++) {
    if (fork() == 0) {
      int status = run_rank(argv[2], argv[3], argv[4], argv[5], iterations, per_node);
      fflush(stdout);
      _exit(status);
    }
  }
  int failed = 0;
  for (int i = 0; i < n_ranks; i++) {
    int status;
    wait(&status);
    failed |= status != 0;
  }
  failed |= shared->bad != 0;
  printf("%s bad=%ld\n", failed ? "FAILED" : "PASSED", shared->bad);
  return failed;
}
