/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that goes away: the other one's kernel waits in vain, NCCL reports the error, and
 * ncclCommAbort ends the kernel. The same for a rank that stays but never joins, where nothing is
 * reported, and for a kernel that a graph launched.
 *
 *   abort [network]
 *
 * network: both stay, and the network fails by itself in their first operation; both get the error.
 */
#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_cuda/test/lib/expect.h"
#include "tests/fake_cuda/test/lib/ranks.h"

#define COUNT ((size_t)8 << 20)

struct scenario {
  const char *name;
  bool is_graph, leaves, network_fails;
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void launch(const struct scenario *s, float *buffer, ncclComm_t comm, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  if (s->is_graph)
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
  if (!s->is_graph)
    return;
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphExecDestroy(exec));
}

static ncclResult_t wait_for_error(ncclComm_t comm, double seconds) {
  ncclResult_t error = ncclSuccess;
  double end = now_s() + seconds;
  while (!error && now_s() < end) {
    CHECK(ncclCommGetAsyncError(comm, &error));
    usleep(1000);
  }
  return error;
}

/* The kernel waits in vain: what NCCL reports of it, and how it is ended. */
static void end_by_abort(const struct scenario *s, ncclComm_t comm, cudaStream_t stream) {
  bool is_reported = s->leaves || s->network_fails;
  ncclResult_t error = wait_for_error(comm, is_reported ? 30 : 0.3);
  EXPECT(is_reported ? error == ncclRemoteError || error == ncclSystemError : !error);
  EXPECT_CODE(cudaErrorNotReady, cudaStreamQuery(stream));
  double begin = now_s();
  EXPECT_OK(ncclCommAbort(comm));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(now_s() - begin < 10);
  printf("%s: aborted in %.3f s\n", s->name, now_s() - begin);
}

static int run_rank(int rank, void *arg) {
  const struct scenario *s = arg;
  ncclComm_t comm;
  cudaStream_t stream;
  float *buffer;
  char host[16];
  snprintf(host, sizeof host, "host%d", rank);
  setenv("NCCL_HOSTID", host, 1);
  ncclUniqueId id = ranks_unique_id(rank);
  CHECK(ncclCommInitRank(&comm, 2, id, rank));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc((void **)&buffer, COUNT * sizeof *buffer));
  if (s->network_fails) {
    launch(s, buffer, comm, stream);
    end_by_abort(s, comm, stream);
    return expect_report();
  }
  CHECK(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
  CHECK(cudaStreamSynchronize(stream));
  ranks_barrier();
  if (rank && s->leaves)
    return 0;
  if (!rank) {
    launch(s, buffer, comm, stream);
    end_by_abort(s, comm, stream);
  }
  if (!s->leaves)
    ranks_barrier();
  return rank ? 0 : expect_report();
}

int main(int argc, char **argv) {
  const struct scenario scenarios[] = {
    { .name = "a rank leaves", .leaves = true },
    { .name = "a rank never joins" },
    { .name = "a rank leaves, graph", .is_graph = true, .leaves = true },
    { .name = "a rank never joins, graph", .is_graph = true },
  };
  const struct scenario network = { .name = "the network fails", .network_fails = true };
  int failed = 0;
  if (argc > 1 && (argc > 2 || strcmp(argv[1], "network"))) {
    fprintf(stderr, "usage: abort [network]\n");
    return 2;
  }
  if (argc > 1)
    return ranks_run(2, run_rank, (void *)&network) ? 1 : 0;
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
    failed += ranks_run(2, run_rank, (void *)&scenarios[i]);
  return failed ? 1 : 0;
}
