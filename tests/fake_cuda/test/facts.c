/* SPDX-License-Identifier: Apache-2.0 */
/* The table of NCCL releases, and the refusal of a release that has no row.
 *
 * The program poses as NCCL 2.30.7: it registers a kernel, as nvcc's code does, and exports
 * ncclGetVersion. The kernel must fail with one message that names the release, and must not touch
 * its arguments. */
#include <cuda_runtime.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/nccl/facts.h"
#include "tests/fake_cuda/test/lib/expect.h"

#define UNSUPPORTED 23007

/* crt/host_runtime.h of the CUDA toolkit */
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *device_name, int thread_limit, void *thread_id,
                            void *block_id, void *block_dim, void *grid_dim, int *warp_size);

__attribute__((visibility("default"))) int ncclGetVersion(int *version);

int ncclGetVersion(int *version) {
  *version = UNSUPPORTED;
  return 0;
}

static const char kernel_stub[] = "address of a host stub";

static void test_table(void) {
  char list[64];
  const struct nccl_facts *older = nccl_facts_find(22203), *newer = nccl_facts_find(22907);
  if (EXPECT(older && newer)) {
    EXPECT(!strcmp(older->release, "2.22.3") && !older->has_pat && !older->has_fp8);
    EXPECT(!strcmp(newer->release, "2.29.7") && newer->has_pat && newer->has_fp8);
  }
  EXPECT(!nccl_facts_find(0));
  EXPECT(!nccl_facts_find(22200) && !nccl_facts_find(22204));
  EXPECT(!nccl_facts_find(22906) && !nccl_facts_find(22908));
  EXPECT(!nccl_facts_find(UNSUPPORTED));
  nccl_facts_list(list, sizeof list);
  EXPECT(!strcmp(list, "2.22.3, 2.29.7"));
}

/* Runs the kernel twice with stderr in a pipe; returns what was written. */
static void launch_unsupported(char *text, size_t size) {
  char name[] = "_Z25ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE";
  static char args[4096];
  void *params[] = { args };
  int ends[2], saved = dup(STDERR_FILENO);
  if (pipe(ends))
    return;
  void **binary = __cudaRegisterFatBinary(NULL);
  __cudaRegisterFunction(binary, kernel_stub, name, name, -1, NULL, NULL, NULL, NULL, NULL);
  dup2(ends[1], STDERR_FILENO);
  memset(args, 0xff, sizeof args); /* pointers that must not be followed */
  for (int i = 0; i < 2; i++)
    EXPECT_OK(cudaLaunchKernel(kernel_stub, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, params, 0, NULL));
  EXPECT_CODE(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  EXPECT_CODE(cudaErrorLaunchFailure, cudaStreamSynchronize(NULL));
  dup2(saved, STDERR_FILENO);
  close(ends[1]);
  ssize_t n = read(ends[0], text, size - 1);
  text[n > 0 ? n : 0] = 0;
  close(ends[0]);
  close(saved);
  __cudaUnregisterFatBinary(binary);
}

static void test_refusal(void) {
  char text[2048] = "";
  launch_unsupported(text, sizeof text);
  const char *line_end = strchr(text, '\n');
  EXPECT(strstr(text, "NCCL 2.30.7 is not supported") != NULL);
  EXPECT(strstr(text, "supported releases: 2.22.3, 2.29.7") != NULL);
  EXPECT(line_end && !line_end[1]); /* one message, not one per kernel */
}

int main(void) {
  test_table();
  test_refusal();
  return expect_report();
}
