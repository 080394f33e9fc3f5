/* SPDX-License-Identifier: Apache-2.0 */
/* Several GPUs in one process: group calls, a scalar reduction, split communicators, two streams
 * per GPU, and graphs.
 *
 *   multi GPUS [-m]
 *
 * -m takes the buffers from ncclMemAlloc and registers them. */
#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/test/lib/expect.h"
#include "tests/fake_cuda/test/lib/ranks.h"

#define MAX_GPUS 16
#define COUNT ((size_t)1 << 18)
#define BYTES (COUNT * sizeof(float))

static int gpus;
static bool is_registered;
static ncclComm_t comms[MAX_GPUS], halves[MAX_GPUS];
static float *in[MAX_GPUS], *out[MAX_GPUS];
static cudaStream_t streams[MAX_GPUS], others[MAX_GPUS];

/* ---- what each GPU sends, and what the results are ---- */

static float scale = 1; /* changes the input between launches of a graph */

static float input(int gpu, size_t i) {
  return scale * ((float)gpu + (float)(i % 7));
}

static float sum_of_all(int gpu, size_t i) {
  (void)gpu;
  return scale * ((float)(gpus * (gpus - 1) / 2) + (float)gpus * (float)(i % 7));
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

static void fill(float new_scale) {
  scale = new_scale;
  for (int g = 0; g < gpus; g++) {
    for (size_t i = 0; i < COUNT; i++)
      in[g][i] = input(g, i);
    memset(out[g], 0xee, BYTES);
  }
}

static void verify(const char *what, float (*expected)(int gpu, size_t i)) {
  long wrong = 0;
  for (int g = 0; g < gpus; g++) {
    CHECK(cudaSetDevice(g));
    CHECK(cudaStreamSynchronize(streams[g]));
    CHECK(cudaStreamSynchronize(others[g]));
    for (size_t i = 0; i < COUNT; i++) {
      float want = expected(g, i);
      if (out[g][i] != want && !wrong++)
        printf("%s: GPU %d, element %zu is %g instead of %g\n", what, g, i, (double)out[g][i],
               (double)want);
    }
  }
  EXPECT(!wrong);
}

/* ---- operations ---- */

static void all_reduce(ncclComm_t *communicators, const ncclRedOp_t *op) {
  CHECK(ncclGroupStart());
  for (int g = 0; g < gpus; g++)
    CHECK(ncclAllReduce(in[g], out[g], COUNT, ncclFloat, op ? op[g] : ncclSum, communicators[g],
                        streams[g]));
  CHECK(ncclGroupEnd());
}

static void pass_on(void) {
  CHECK(ncclGroupStart());
  for (int g = 0; g < gpus; g++) {
    CHECK(ncclSend(in[g], COUNT, ncclFloat, (g + 1) % gpus, comms[g], streams[g]));
    CHECK(ncclRecv(out[g], COUNT, ncclFloat, (g + gpus - 1) % gpus, comms[g], streams[g]));
  }
  CHECK(ncclGroupEnd());
}

static void test_operations(void) {
  ncclRedOp_t op[MAX_GPUS];
  float half = 0.5f;
  fill(1);
  all_reduce(comms, NULL);
  verify("all_reduce", sum_of_all);
  fill(1);
  pass_on();
  verify("sendrecv", of_previous);
  for (int g = 0; g < gpus; g++)
    CHECK(ncclRedOpCreatePreMulSum(&op[g], &half, ncclFloat, ncclScalarHostImmediate, comms[g]));
  fill(1);
  all_reduce(comms, op);
  verify("all_reduce premulsum", half_of_sum);
  for (int g = 0; g < gpus; g++) {
    CHECK(ncclRedOpDestroy(op[g], comms[g]));
    op[g] = ncclAvg;
  }
  fill(1);
  all_reduce(comms, op);
  verify("all_reduce avg", average);
}

static void test_split(void) {
  ncclRedOp_t op[MAX_GPUS];
  CHECK(ncclGroupStart());
  for (int g = 0; g < gpus; g++)
    CHECK(ncclCommSplit(comms[g], g % 2, g, &halves[g], NULL));
  CHECK(ncclGroupEnd());
  for (int g = 0; g < gpus; g++)
    op[g] = ncclMax;
  fill(1);
  all_reduce(halves, op);
  verify("split, all_reduce max", max_of_half);
  for (int g = 0; g < gpus; g++)
    CHECK(ncclCommDestroy(halves[g]));
}

/* Two halves of the data on two streams, many times. */
static void test_two_streams(void) {
  size_t half = COUNT / 2;
  fill(1);
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
  verify("two streams", sum_of_all);
}

/* ---- graphs ---- */

/* One graph for all GPUs: the other streams join the capture of the first one and come back. */
static void test_one_graph(void) {
  cudaEvent_t event;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaSetDevice(0));
  CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(event, streams[0]));
  for (int g = 1; g < gpus; g++)
    CHECK(cudaStreamWaitEvent(streams[g], event, 0));
  pass_on();
  all_reduce(comms, NULL);
  for (int g = 1; g < gpus; g++) {
    CHECK(cudaEventRecord(event, streams[g]));
    CHECK(cudaStreamWaitEvent(streams[0], event, 0));
  }
  CHECK(cudaStreamEndCapture(streams[0], &graph));
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int launch = 1; launch <= 4; launch++) {
    fill((float)launch);
    CHECK(cudaGraphLaunch(exec, streams[0]));
    CHECK(cudaStreamSynchronize(streams[0]));
    verify("one graph", sum_of_all);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaEventDestroy(event));
}

/* A graph per GPU, captured and launched side by side. */
static void test_graph_per_gpu(void) {
  cudaGraph_t graph;
  cudaGraphExec_t execs[MAX_GPUS];
  for (int g = 0; g < gpus; g++)
    CHECK(cudaStreamBeginCapture(streams[g], cudaStreamCaptureModeGlobal));
  all_reduce(comms, NULL);
  for (int g = 0; g < gpus; g++) {
    CHECK(cudaStreamEndCapture(streams[g], &graph));
    CHECK(cudaGraphInstantiateWithFlags(&execs[g], graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  for (int launch = 1; launch <= 4; launch++) {
    fill((float)launch);
    for (int g = 0; g < gpus; g++)
      CHECK(cudaGraphLaunch(execs[g], streams[g]));
    verify("graph per GPU", sum_of_all);
  }
  fill(1);
  pass_on(); /* outside of the graphs */
  verify("sendrecv while graphs exist", of_previous);
  for (int g = 0; g < gpus; g++)
    CHECK(cudaGraphExecDestroy(execs[g]));
}

static void set_up(int g, void **handles) {
  CHECK(cudaSetDevice(g));
  if (is_registered) {
    CHECK(ncclMemAlloc((void **)&in[g], BYTES));
    CHECK(ncclMemAlloc((void **)&out[g], BYTES));
    CHECK(ncclCommRegister(comms[g], in[g], BYTES, &handles[0]));
    CHECK(ncclCommRegister(comms[g], out[g], BYTES, &handles[1]));
  } else {
    CHECK(cudaMalloc((void **)&in[g], BYTES));
    CHECK(cudaMalloc((void **)&out[g], BYTES));
  }
  CHECK(cudaStreamCreateWithFlags(&streams[g], cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&others[g], cudaStreamNonBlocking));
}

static void tear_down(int g, void **handles) {
  CHECK(cudaSetDevice(g));
  if (is_registered) {
    CHECK(ncclCommDeregister(comms[g], handles[0]));
    CHECK(ncclCommDeregister(comms[g], handles[1]));
  }
  CHECK(ncclCommDestroy(comms[g]));
  CHECK(cudaStreamDestroy(streams[g]));
  CHECK(cudaStreamDestroy(others[g]));
  if (is_registered) {
    CHECK(ncclMemFree(in[g]));
    CHECK(ncclMemFree(out[g]));
  } else {
    CHECK(cudaFree(in[g]));
    CHECK(cudaFree(out[g]));
  }
}

int main(int argc, char **argv) {
  void *handles[MAX_GPUS][2];
  gpus = argc > 1 ? atoi(argv[1]) : 0;
  is_registered = argc > 2 && !strcmp(argv[2], "-m");
  if (gpus < 2 || gpus > MAX_GPUS || argc > 2 + is_registered) {
    fprintf(stderr, "usage: multi GPUS [-m]     (2 to %d GPUs)\n", MAX_GPUS);
    return 2;
  }
  CHECK(ncclCommInitAll(comms, gpus, NULL));
  for (int g = 0; g < gpus; g++)
    set_up(g, handles[g]);
  test_operations();
  test_split();
  test_two_streams();
  test_one_graph();
  test_graph_per_gpu();
  for (int g = 0; g < gpus; g++)
    tear_down(g, handles[g]);
  return expect_report();
}
