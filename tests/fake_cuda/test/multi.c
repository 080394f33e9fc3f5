/* SPDX-License-Identifier: Apache-2.0 */
/* One process with K emulated GPUs: group calls, split communicators, scalar reductions and two
 * streams per GPU. MEMALLOC=1 takes the buffers from ncclMemAlloc and registers them. */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define MAX_GPUS 16
#define COUNT ((size_t)1 << 20)

#define CHECK(call)                                                                                \
  do {                                                                                             \
    int result_ = (int)(call);                                                                     \
    if (result_) {                                                                                 \
      printf("%s:%d %s -> %d (%s)\n", __FILE__, __LINE__, #call, result_, ncclGetLastError(NULL)); \
      exit(3);                                                                                     \
    }                                                                                              \
  } while (0)

static int gpus;
static ncclComm_t comms[MAX_GPUS], halves[MAX_GPUS];
static float *in[MAX_GPUS], *out[MAX_GPUS];
static cudaStream_t streams[MAX_GPUS], others[MAX_GPUS];
static long bad;

static float input(int gpu, size_t i) {
  return (float)gpu + (float)(i % 7);
}

static float sum_of_all(int gpu, size_t i) {
  (void)gpu;
  return (float)(gpus * (gpus - 1) / 2) + (float)gpus * (float)(i % 7);
}

static float half_of_sum(int gpu, size_t i) {
  return 0.5f * sum_of_all(gpu, i);
}

static float average(int gpu, size_t i) {
  return sum_of_all(gpu, i) / (float)gpus;
}

static float of_previous(int gpu, size_t i) {
  return input((gpu + gpus - 1) % gpus, i);
}

static float max_of_half(int gpu, size_t i) {
  int last = gpu % 2 == (gpus - 1) % 2 ? gpus - 1 : gpus - 2;
  return input(last, i);
}

static void verify(const char *what, float (*expected)(int gpu, size_t i)) {
  long wrong = 0;
  for (int g = 0; g < gpus; g++) {
    CHECK(cudaSetDevice(g));
    CHECK(cudaStreamSynchronize(streams[g]));
    CHECK(cudaStreamSynchronize(others[g]));
    for (size_t i = 0; i < COUNT; i++) {
      float want = expected(g, i);
      if (out[g][i] != want && wrong++ < 2)
        printf("  %s: gpu %d [%zu] got %g want %g\n", what, g, i, out[g][i], want);
    }
  }
  printf("%-24s %s\n", what, wrong ? "BAD" : "ok");
  bad += wrong;
}

static void allreduce(ncclComm_t *c, ncclRedOp_t *op) {
  CHECK(ncclGroupStart());
  for (int g = 0; g < gpus; g++)
    CHECK(ncclAllReduce(in[g], out[g], COUNT, ncclFloat, op[g], c[g], streams[g]));
  CHECK(ncclGroupEnd());
}

static void setup(int g) {
  void *handle;
  CHECK(cudaSetDevice(g));
  if (getenv("MEMALLOC")) {
    CHECK(ncclMemAlloc((void **)&in[g], COUNT * sizeof(float)));
    CHECK(ncclMemAlloc((void **)&out[g], COUNT * sizeof(float)));
    CHECK(ncclCommRegister(comms[g], in[g], COUNT * sizeof(float), &handle));
    CHECK(ncclCommRegister(comms[g], out[g], COUNT * sizeof(float), &handle));
  } else {
    CHECK(cudaMalloc((void **)&in[g], COUNT * sizeof(float)));
    CHECK(cudaMalloc((void **)&out[g], COUNT * sizeof(float)));
  }
  CHECK(cudaStreamCreateWithFlags(&streams[g], cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&others[g], cudaStreamNonBlocking));
  for (size_t i = 0; i < COUNT; i++)
    in[g][i] = input(g, i);
}

/* Two halves of the data on two streams, many times. */
static void interleave(void) {
  size_t half = COUNT / 2;
  for (int round = 0; round < 20; round++) {
    CHECK(ncclGroupStart());
    for (int g = 0; g < gpus; g++)
      CHECK(ncclAllReduce(in[g], out[g], half, ncclFloat, ncclSum, comms[g], streams[g]));
    CHECK(ncclGroupEnd());
    CHECK(ncclGroupStart());
    for (int g = 0; g < gpus; g++)
      CHECK(ncclAllReduce(in[g] + half, out[g] + half, half, ncclFloat, ncclSum, comms[g],
                          others[g]));
    CHECK(ncclGroupEnd());
  }
}

int main(int argc, char **argv) {
  gpus = argc > 1 ? atoi(argv[1]) : 4;
  int devices[MAX_GPUS];
  ncclRedOp_t op[MAX_GPUS];
  float half = 0.5f;
  for (int g = 0; g < gpus; g++)
    devices[g] = g;
  CHECK(ncclCommInitAll(comms, gpus, devices));
  for (int g = 0; g < gpus; g++)
    setup(g);

  for (int g = 0; g < gpus; g++)
    op[g] = ncclSum;
  allreduce(comms, op);
  verify("allreduce", sum_of_all);

  CHECK(ncclGroupStart());
  for (int g = 0; g < gpus; g++) {
    CHECK(ncclSend(in[g], COUNT, ncclFloat, (g + 1) % gpus, comms[g], streams[g]));
    CHECK(ncclRecv(out[g], COUNT, ncclFloat, (g + gpus - 1) % gpus, comms[g], streams[g]));
  }
  CHECK(ncclGroupEnd());
  verify("sendrecv", of_previous);

  for (int g = 0; g < gpus; g++)
    CHECK(ncclRedOpCreatePreMulSum(&op[g], &half, ncclFloat, ncclScalarHostImmediate, comms[g]));
  allreduce(comms, op);
  verify("premulsum", half_of_sum);

  for (int g = 0; g < gpus; g++)
    op[g] = ncclAvg;
  allreduce(comms, op);
  verify("avg", average);

  CHECK(ncclGroupStart());
  for (int g = 0; g < gpus; g++)
    CHECK(ncclCommSplit(comms[g], g % 2, g, &halves[g], NULL));
  CHECK(ncclGroupEnd());
  for (int g = 0; g < gpus; g++)
    op[g] = ncclMax;
  allreduce(halves, op);
  verify("split, max", max_of_half);

  interleave();
  verify("two streams", sum_of_all);

  for (int g = 0; g < gpus; g++)
    CHECK(ncclCommDestroy(halves[g]));
  for (int g = 0; g < gpus; g++)
    CHECK(ncclCommDestroy(comms[g]));
  printf("%s\n", bad ? "FAILED" : "PASSED");
  return bad != 0;
}
