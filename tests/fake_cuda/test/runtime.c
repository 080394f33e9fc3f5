/* SPDX-License-Identifier: Apache-2.0 */
/* Exercises the CUDA runtime calls without NCCL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

static int bad;
static volatile int host_calls;

static void expect(int condition, const char *what) {
  printf("%-44s %s\n", what, condition ? "ok" : "BAD");
  bad += !condition;
}

#define OK(call) expect((call) == cudaSuccess, #call)

static void host_function(void *arg) {
  (void)arg;
  host_calls++;
}

int main(void) {
  enum { SIZE = 1 << 20 };
  struct cudaDeviceProp prop;
  struct cudaPointerAttributes attr;
  cudaStream_t stream, blocking;
  cudaEvent_t first, second;
  enum cudaDriverEntryPointQueryResult found;
  char *device, *pinned, *pageable = aligned_alloc(4096, SIZE);
  void *fn, *mapped;
  float ms = -1;
  int value;

  OK(cudaGetDeviceCount(&value));
  OK(cudaGetDeviceProperties(&prop, 0));
  expect(prop.major >= 7 && prop.totalGlobalMem > 0, "device properties are filled in");
  expect(cudaSetDevice(99) == cudaErrorInvalidDevice, "a wrong device is refused");
  expect(cudaGetLastError() == cudaErrorInvalidDevice, "the error is remembered");
  expect(cudaGetLastError() == cudaSuccess, "and cleared");

  OK(cudaMalloc((void **)&device, SIZE));
  OK(cudaHostAlloc((void **)&pinned, SIZE, cudaHostAllocMapped));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamCreate(&blocking));
  OK(cudaEventCreate(&first));
  OK(cudaEventCreate(&second));

  memset(pinned, 5, SIZE);
  OK(cudaEventRecord(first, stream));
  OK(cudaMemcpyAsync(device, pinned, SIZE, cudaMemcpyDefault, stream));
  OK(cudaLaunchHostFunc(stream, host_function, NULL));
  OK(cudaMemcpyAsync(pageable, device, SIZE, cudaMemcpyDeviceToHost, stream));
  expect(!memcmp(pageable, pinned, SIZE), "copy to pageable memory is complete");
  expect(host_calls == 1, "host function ran before it");
  OK(cudaEventRecord(second, stream));
  OK(cudaEventSynchronize(second));
  OK(cudaEventElapsedTime(&ms, first, second));
  expect(ms >= 0, "elapsed time");

  memset(pageable, 7, SIZE);
  OK(cudaMemcpyAsync(device, pageable, SIZE, cudaMemcpyHostToDevice, stream));
  memset(pageable, 0, SIZE);
  OK(cudaStreamSynchronize(stream));
  expect(device[SIZE - 1] == 7, "copy from pageable memory was staged");

  OK(cudaMemsetAsync(device, 1, SIZE, blocking));
  OK(cudaMemcpy(pageable, device, SIZE, cudaMemcpyDeviceToHost));
  expect(pageable[SIZE - 1] == 1, "default stream waits for a blocking stream");

  OK(cudaPointerGetAttributes(&attr, device + 100));
  expect(attr.type == cudaMemoryTypeDevice && attr.device == 0, "device pointer");
  OK(cudaPointerGetAttributes(&attr, pinned));
  expect(attr.type == cudaMemoryTypeHost, "pinned pointer");
  OK(cudaPointerGetAttributes(&attr, &attr));
  expect(attr.type == cudaMemoryTypeUnregistered, "unregistered pointer");
  OK(cudaHostRegister(pageable, SIZE, cudaHostRegisterMapped));
  OK(cudaHostGetDevicePointer(&mapped, pageable, 0));
  OK(cudaHostUnregister(pageable));
  expect(cudaHostUnregister(pageable) == cudaErrorHostMemoryNotRegistered, "double unregister");

  OK(cudaGetDriverEntryPoint("cuMemCreate", &fn, 0, &found));
  expect(fn && found == cudaDriverEntryPointSuccess, "driver entry point found");
  OK(cudaGetDriverEntryPoint("cuNoSuchThing", &fn, 0, &found));
  expect(!fn && found == cudaDriverEntryPointSymbolNotFound, "driver entry point missing");

  OK(cudaStreamDestroy(stream));
  OK(cudaStreamDestroy(blocking));
  OK(cudaEventDestroy(first));
  OK(cudaEventDestroy(second));
  OK(cudaFreeHost(pinned));
  OK(cudaFree(device));
  expect(cudaFree(device) == cudaErrorInvalidValue, "double free");
  OK(cudaDeviceSynchronize());
  printf("%s\n", bad ? "FAILED" : "PASSED");
  return bad != 0;
}
