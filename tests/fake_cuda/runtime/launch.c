/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel registration and launch.
 *
 * nvcc puts calls to the __cudaRegister* functions (declared in CUDA's crt/host_runtime.h) into
 * every object with device code. They tell us each kernel's host stub address and mangled name,
 * which is all we need: device code is never looked at. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/runtime/launch.h"
#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/memory.h"
#include "tests/fake_cuda/runtime/stream.h"

#define KERNEL_BUCKETS 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels[KERNEL_BUCKETS];

static unsigned bucket(const void *host_function) {
  return ((uintptr_t)host_function >> 4) % KERNEL_BUCKETS;
}

/* The kernel of a host stub, or NULL. */
static struct kernel *kernel_find(const void *function) {
  struct kernel *found = NULL;
  pthread_mutex_lock(&lock);
  for (struct kernel *k = kernels[bucket(function)]; k && !found; k = k->next) {
    if (k->host_function == function)
      found = k;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- compiler ABI ---- */

EXPORT void **__cudaRegisterFatBinary(void *fatbin) {
  return calloc(1, sizeof(void *));
}

SUCCEEDS(__cudaRegisterFatBinaryEnd)

EXPORT void __cudaUnregisterFatBinary(void **handle) {
  free(handle);
}

SUCCEEDS(__cudaInitModule)

EXPORT void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                                   const char *device_name, int thread_limit, void *thread_id,
                                   void *block_id, void *block_dim, void *grid_dim, int *warpSize) {
  struct kernel *k = malloc(sizeof *k);
  k->host_function = host_function;
  k->name = strdup(device_name);
  pthread_mutex_lock(&lock);
  k->next = kernels[bucket(host_function)];
  kernels[bucket(host_function)] = k;
  pthread_mutex_unlock(&lock);
  LOG(LOG_TRACE, "kernel %s", device_name);
}

SUCCEEDS(__cudaRegisterVar)

/* ---- launch ---- */

struct launch {
  struct kernel *kernel;
  unsigned grid;
  bool has_args;
  char args[] __attribute__((aligned(16)));
};

static void run_launch(void *arg) {
  const struct launch *l = arg;
  if (!l->has_args || !nccl_kernel_is(l->kernel->name)) {
    LOG(LOG_ERROR, "kernel %s is not emulated", l->kernel->name);
    device_set_fault();
  } else if (!nccl_kernel_run(l->kernel, l->grid, l->args)) {
    device_set_fault();
  }
}

/* With a copy of the arguments, which NCCL hands over as one buffer; without one the kernel is none
 * of NCCL's. */
static CUresult launch(struct kernel *kernel, unsigned grid, cudaStream_t stream, void **extra) {
  const void *buffer = NULL;
  size_t bytes = 0;
  LOG(LOG_LAUNCH, "launch %s grid %u", kernel->name, grid);
  for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *(size_t *)extra[i + 1];
  }
  struct launch *l = aligned_alloc(16, round_up(sizeof *l + bytes, 16));
  *l = (struct launch){ .kernel = kernel, .grid = grid, .has_args = buffer != NULL };
  if (buffer)
    memcpy(l->args, buffer, bytes);
  return (CUresult)stream_submit(stream_resolve(stream), op_new(run_launch, free, l));
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared, CUstream stream, void **params,
                               void **extra) {
  return launch((struct kernel *)function, grid_x * grid_y * grid_z, stream, extra);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                                 void **extra) {
  unsigned grid = config->gridDimX * config->gridDimY * config->gridDimZ;
  CUresult result = launch((struct kernel *)function, grid, config->hStream, extra);
  for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
    CUlaunchAttribute *a = &config->attrs[i];
    /* Fires when the kernel has ended, which is later than on a GPU but never too early. */
    if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
      result = (CUresult)cudaEventRecord(a->value.launchCompletionEvent.event, config->hStream);
  }
  return result;
}

EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
                                    size_t shared, cudaStream_t stream) {
  struct kernel *k = kernel_find(func);
  if (!k)
    return error_set(cudaErrorInvalidDeviceFunction);
  return (cudaError_t)launch(k, grid.x * grid.y * grid.z, stream, NULL);
}

EXPORT cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) {
  struct kernel *k = kernel_find(symbol);
  if (!k)
    return error_set(cudaErrorInvalidDeviceFunction);
  *function = (cudaFunction_t)k;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func) {
  if (!kernel_find(func))
    return error_set(cudaErrorInvalidDeviceFunction);
  memset(attr, 0, sizeof *attr);
  attr->maxThreadsPerBlock = 1024;
  attr->numRegs = 96;
  attr->ptxVersion = 80;
  attr->binaryVersion = 80;
  attr->maxDynamicSharedSizeBytes = SHARED_MEMORY_OPTIN_BYTES;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *func, int attribute, int value) {
  return kernel_find(func) ? cudaSuccess : error_set(cudaErrorInvalidDeviceFunction);
}
