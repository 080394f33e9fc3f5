/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch calls and NCCL does not, and the driver by name, as a program linked with
 * libcuda.so.1 has it. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/test/lib/expect.h"

enum { SIZE = 1 << 20 };

static void test_launch_configurations(void) {
  const dim3 one = { 1, 2, 3 }, two = { 4, 5, 6 };
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  EXPECT(!__cudaPushCallConfiguration(one, two, 7, cudaStreamLegacy));
  EXPECT(!__cudaPushCallConfiguration(two, one, 8, cudaStreamPerThread));
  EXPECT_OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  EXPECT(grid.y == 5 && block.z == 3 && shared == 8 && stream == cudaStreamPerThread);
  EXPECT_OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  EXPECT(grid.y == 2 && block.z == 6 && shared == 7 && stream == cudaStreamLegacy);
  EXPECT_CODE(cudaErrorInvalidValue, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  EXPECT_CODE(cudaErrorInvalidValue, cudaPeekAtLastError());
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_OK(cudaPeekAtLastError());
  int before = 0;
  while (before < 100 && !__cudaPushCallConfiguration(one, two, 0, NULL))
    before++;
  EXPECT(before > 0 && before < 100); /* what nobody pops ends in an error */
  while (before--)
    EXPECT_OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  cudaLaunchConfig_t config = { .gridDim = one, .blockDim = two };
  EXPECT_CODE(cudaErrorInvalidDeviceFunction, cudaLaunchKernelExC(&config, &config, NULL));
  cudaGetLastError();
}

static int blocks_of(int threads, size_t shared) {
  int blocks = -1;
  EXPECT_OK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, NULL, threads, shared, 0));
  return blocks;
}

static void test_occupancy(void) {
  EXPECT(blocks_of(1024, 0) == 2);
  EXPECT(blocks_of(1000, 0) == 2); /* of whole warps */
  EXPECT(blocks_of(32, 0) == 32);
  EXPECT(blocks_of(32, 100 << 10) == 2);
}

static void test_priorities(void) {
  int least, greatest, priority = 1;
  cudaStream_t stream;
  EXPECT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(least == 0 && greatest < least);
  EXPECT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 1));
  EXPECT_OK(cudaStreamGetPriority(stream, &priority));
  EXPECT(priority == greatest);
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamGetPriority(NULL, &priority));
  EXPECT(priority == 0);
}

static void test_elapsed_time(void) {
  cudaEvent_t begin, end;
  float ms = -1;
  EXPECT_OK(cudaEventCreate(&begin));
  EXPECT_OK(cudaEventCreate(&end));
  EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, begin, end));
  EXPECT_OK(cudaEventRecord(begin, NULL));
  EXPECT_OK(cudaEventSynchronize(begin));
  usleep(2000);
  EXPECT_OK(cudaEventRecord(end, NULL));
  EXPECT_OK(cudaEventSynchronize(end));
  EXPECT_OK(cudaEventElapsedTime(&ms, begin, end));
  EXPECT(ms >= 2);
  EXPECT_OK(cudaEventDestroy(begin));
  EXPECT_OK(cudaEventDestroy(end));
}

static void test_memory(void) {
  size_t before, after, total;
  char *first, *second, host[16] = "copied";
  cudaMemPool_t pool;
  EXPECT_OK(cudaMemGetInfo(&before, &total));
  EXPECT_OK(cudaMalloc((void **)&first, SIZE));
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_OK(cudaMallocAsync((void **)&second, SIZE, NULL));
  EXPECT_OK(cudaMemGetInfo(&after, &total));
  EXPECT(before <= total && before - after == 2 * SIZE);
  EXPECT_OK(cudaMemcpy(first, host, sizeof host, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpyPeerAsync(second, 0, first, 0, sizeof host, NULL));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(!strcmp(second, host));
  EXPECT_CODE(cudaErrorInvalidDevice, cudaMemcpyPeerAsync(second, 9, first, 0, 1, NULL));
  cudaGetLastError();
  EXPECT_OK(cudaFreeAsync(second, NULL));
  EXPECT_OK(cudaFree(first));
  EXPECT_OK(cudaMemGetInfo(&after, &total));
  EXPECT(before == after);
}

static void count_call(void *arg) {
  ++*(int *)arg;
}

static void test_graph_nodes(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t made[2], got[2] = { NULL, NULL };
  size_t count = 0;
  int calls = 0;
  const struct cudaHostNodeParams params = { count_call, &calls };
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddHostNode(&made[0], graph, NULL, 0, &params));
  EXPECT_OK(cudaGraphAddHostNode(&made[1], graph, &made[0], 1, &params));
  EXPECT_OK(cudaGraphGetNodes(graph, NULL, &count));
  EXPECT(count == 2);
  count = 1;
  EXPECT_OK(cudaGraphGetNodes(graph, got, &count));
  EXPECT(count == 1 && got[0] == made[0] && !got[1]);
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphLaunch(exec, NULL));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(calls == 2);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

static void test_driver_by_name(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY), *entry;
  CUresult (*get_state)(CUdevice, unsigned *, int *);
  unsigned flags = 1;
  int is_active = 0;
  if (!EXPECT(driver))
    return;
  EXPECT_OK(cudaGetDriverEntryPoint("cuMemCreate", &entry, 0, NULL));
  EXPECT(dlsym(driver, "cuMemCreate") == entry); /* one emulation, not two */
  entry = dlsym(driver, "cuDevicePrimaryCtxGetState");
  memcpy(&get_state, &entry, sizeof entry);
  if (EXPECT(get_state)) {
    EXPECT_CODE(CUDA_SUCCESS, get_state(0, &flags, &is_active));
    EXPECT(is_active && !flags);
    EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, get_state(9, &flags, &is_active));
  }
  entry = dlsym(driver, "cuMemsetD32Async");
  CUresult (*fill)(CUdeviceptr, unsigned, size_t, CUstream);
  memcpy(&fill, &entry, sizeof fill);
  uint32_t *words;
  EXPECT_OK(cudaMalloc((void **)&words, 16));
  if (EXPECT(fill)) {
    EXPECT_CODE(CUDA_SUCCESS, fill((CUdeviceptr)words, 0x01020304, 3, NULL));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(words[0] == 0x01020304 && words[2] == 0x01020304 && words[3] == 0);
  }
  EXPECT_OK(cudaFree(words));
  dlclose(driver);
}

int main(void) {
  test_launch_configurations();
  test_occupancy();
  test_priorities();
  test_elapsed_time();
  test_memory();
  test_graph_nodes();
  test_driver_by_name();
  return expect_report();
}
