/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime calls, without NCCL: errors, memory, copies, streams, events, driver entry
 * points, sharing between processes. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake_cuda/test/lib/expect.h"

enum { SIZE = 1 << 20 };

static void test_devices(void) {
  struct cudaDeviceProp prop;
  int count = 0, value = 0, device = -1;
  char bus_id[32];
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT(count == 1);
  EXPECT_OK(cudaGetDeviceProperties(&prop, 0));
  EXPECT(!strncmp(prop.name, "stratus emulated GPU", strlen("stratus emulated GPU")));
  EXPECT(prop.major == 8 && prop.minor == 0 && prop.totalGlobalMem > 0);
  EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT(value == 8);
  EXPECT_OK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0));
  EXPECT_OK(cudaDeviceGetByPCIBusId(&device, bus_id));
  EXPECT(device == 0);
  EXPECT_CODE(cudaErrorInvalidDevice, cudaSetDevice(99));
  EXPECT_CODE(cudaErrorInvalidDevice, cudaGetLastError());
  EXPECT_CODE(cudaSuccess, cudaGetLastError());
  EXPECT(
      !strcmp(cudaGetErrorName(cudaErrorStreamCaptureUnjoined), "cudaErrorStreamCaptureUnjoined"));
}

static void count_call(void *arg) {
  ++*(int *)arg;
}

static void sleep_briefly(void *arg) {
  (void)arg;
  usleep(20000);
}

/* Holds a stream until the test has seen that it is held. */
static void await(void *go) {
  sem_wait(go);
}

static void test_copies(void) {
  char *device, *pinned, *pageable = aligned_alloc(4096, SIZE);
  cudaStream_t stream, blocking;
  int calls = 0;
  EXPECT_OK(cudaMalloc((void **)&device, SIZE));
  EXPECT_OK(cudaHostAlloc((void **)&pinned, SIZE, cudaHostAllocMapped));
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreate(&blocking));
  memset(pinned, 5, SIZE);
  EXPECT_OK(cudaMemcpyAsync(device, pinned, SIZE, cudaMemcpyDefault, stream));
  EXPECT_OK(cudaLaunchHostFunc(stream, count_call, &calls));
  EXPECT_OK(cudaMemcpyAsync(pageable, device, SIZE, cudaMemcpyDeviceToHost, stream));
  EXPECT(!memcmp(pageable, pinned, SIZE)); /* a copy to pageable memory is complete on return */
  EXPECT(calls == 1);

  memset(pageable, 7, SIZE);
  EXPECT_OK(cudaLaunchHostFunc(stream, sleep_briefly, NULL));
  EXPECT_OK(cudaMemcpyAsync(device, pageable, SIZE, cudaMemcpyHostToDevice, stream));
  memset(pageable, 0, SIZE);
  EXPECT_OK(cudaStreamQuery(stream));
  EXPECT(device[SIZE - 1] == 7); /* so is one from there */

  EXPECT_OK(cudaLaunchHostFunc(blocking, sleep_briefly, NULL));
  EXPECT_OK(cudaMemsetAsync(device, 1, SIZE, blocking));
  EXPECT_OK(cudaMemcpy(pageable, device, SIZE, cudaMemcpyDeviceToHost));
  EXPECT(pageable[SIZE - 1] == 1); /* the default stream waits for blocking streams */

  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(blocking));
  EXPECT_OK(cudaFreeHost(pinned));
  EXPECT_OK(cudaFree(device));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(device));
  cudaGetLastError();
  free(pageable);
}

static void test_events(void) {
  cudaStream_t first, second;
  cudaEvent_t begin, end;
  sem_t go;
  int calls = 0;
  sem_init(&go, 0, 0);
  EXPECT_OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreate(&begin));
  EXPECT_OK(cudaEventCreate(&end));
  EXPECT_OK(cudaEventQuery(begin)); /* never recorded counts as done */
  EXPECT_OK(cudaEventRecord(begin, first));
  EXPECT_OK(cudaLaunchHostFunc(first, await, &go));
  EXPECT_OK(cudaLaunchHostFunc(first, sleep_briefly, NULL));
  EXPECT_OK(cudaLaunchHostFunc(first, count_call, &calls));
  EXPECT_OK(cudaEventRecord(end, first));
  EXPECT_CODE(cudaErrorNotReady, cudaEventQuery(end));
  EXPECT_OK(cudaStreamWaitEvent(second, end, 0));
  sem_post(&go);
  EXPECT_OK(cudaStreamSynchronize(second));
  EXPECT(calls == 1);
  EXPECT_OK(cudaEventSynchronize(end));
  EXPECT_OK(cudaEventDestroy(begin));
  EXPECT_OK(cudaEventDestroy(end));
  EXPECT_OK(cudaStreamDestroy(first));
  EXPECT_OK(cudaStreamDestroy(second));
  EXPECT_OK(cudaDeviceSynchronize());
  sem_destroy(&go);
}

static void test_pointers(void) {
  struct cudaPointerAttributes attr;
  char *device, *pinned, *pageable = aligned_alloc(4096, SIZE);
  void *mapped;
  EXPECT_OK(cudaMalloc((void **)&device, SIZE));
  EXPECT_OK(cudaHostAlloc((void **)&pinned, SIZE, cudaHostAllocDefault));
  EXPECT_OK(cudaPointerGetAttributes(&attr, device + 100));
  EXPECT(attr.type == cudaMemoryTypeDevice && attr.device == 0);
  EXPECT_OK(cudaPointerGetAttributes(&attr, pinned));
  EXPECT(attr.type == cudaMemoryTypeHost);
  EXPECT_OK(cudaPointerGetAttributes(&attr, &attr));
  EXPECT(attr.type == cudaMemoryTypeUnregistered);
  EXPECT_OK(cudaHostRegister(pageable, SIZE, cudaHostRegisterMapped));
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, pageable, 0));
  EXPECT(mapped == pageable);
  EXPECT_OK(cudaHostUnregister(pageable));
  EXPECT_CODE(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pageable));
  EXPECT_OK(cudaFreeHost(pinned));
  EXPECT_OK(cudaFree(device));
  free(pageable);
}

/* What a net plugin does: a dma-buf file descriptor for a range of device memory. */
static void test_dmabuf(void) {
  CUresult (*export_range)(void *, CUdeviceptr, size_t, int, unsigned long long);
  enum cudaDriverEntryPointQueryResult found;
  void *entry = NULL;
  char *device;
  int fd = -1;
  EXPECT_OK(cudaGetDriverEntryPoint("cuNoSuchThing", &entry, 0, &found));
  EXPECT(!entry && found == cudaDriverEntryPointSymbolNotFound);
  EXPECT_OK(cudaGetDriverEntryPoint("cuMemGetHandleForAddressRange", &entry, 0, &found));
  if (!EXPECT(entry && found == cudaDriverEntryPointSuccess))
    return;
  memcpy(&export_range, &entry, sizeof entry);
  EXPECT_OK(cudaMalloc((void **)&device, SIZE));
  setenv("FAKE_CUDA_DMABUF", "0", 1);
  EXPECT_CODE(CUDA_ERROR_NOT_SUPPORTED,
              export_range(&fd, (CUdeviceptr)device, SIZE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  setenv("FAKE_CUDA_DMABUF", "1", 1);
  EXPECT_CODE(CUDA_SUCCESS, export_range(&fd, (CUdeviceptr)device + 4096, 8192,
                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  char *view = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (EXPECT(view != MAP_FAILED)) {
    device[4096 + 5] = 42;
    EXPECT(view[5] == 42);
    view[6] = 43;
    EXPECT(device[4096 + 6] == 43);
    munmap(view, 8192);
  }
  close(fd);
  EXPECT_OK(cudaFree(device));
}

static void test_ipc(void) {
  cudaIpcMemHandle_t handle;
  char *device;
  int status = -1;
  EXPECT_OK(cudaMalloc((void **)&device, SIZE));
  EXPECT_OK(cudaIpcGetMemHandle(&handle, device));
  pid_t child = fork();
  if (!child) {
    char *peer;
    if (cudaIpcOpenMemHandle((void **)&peer, handle, cudaIpcMemLazyEnablePeerAccess))
      _exit(1);
    peer[77] = 9;
    _exit(cudaIpcCloseMemHandle(peer) ? 2 : 0);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(device[77] == 9);
  EXPECT_OK(cudaFree(device));
}

int main(void) {
  test_devices();
  test_copies();
  test_events();
  test_pointers();
  test_dmabuf();
  test_ipc();
  return expect_report();
}
