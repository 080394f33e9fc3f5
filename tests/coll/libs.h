/* SPDX-License-Identifier: Apache-2.0 */
/* libs: finds NCCL and the CUDA runtime when the program runs, never when it is built: no header of
 * either need be on the machine, and one binary serves every release. Only public, documented
 * functions are used (nccl.h of 2.19 and later, the CUDA 12 and 13 runtime API).
 * Owns: the loaded libraries, until the process ends.  Threads: loaded by one, used by any.
 * Blocks: while the libraries load.  Fails: with the loader's message. */
#ifndef COLL_LIBS_H
#define COLL_LIBS_H

#include <stdbool.h>
#include <stddef.h>

/* ---- NCCL: values are those of nccl.h ---- */

typedef struct ncclComm *ncclComm_t;
typedef struct {
  char internal[128];
} ncclUniqueId;
typedef int ncclResult_t;   /* an enum there; 0 is success, 7 in progress */
typedef int ncclDataType_t; /* an enum there; values in element.c */
typedef int ncclRedOp_t;    /* an enum there */

enum { ncclSuccess = 0, ncclInProgress = 7 };
enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };

/* ---- CUDA runtime ---- */

typedef int cudaError_t; /* an enum there; 0 is success */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

enum { cudaSuccess = 0, cudaErrorNotReady = 600 };
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };

/* ---- functions: X(result, name, arguments) ---- */

#define NCCL_FUNCTIONS(X)                                                                          \
  X(ncclResult_t, ncclGetVersion, (int *version))                                                  \
  X(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id))                                            \
  X(const char *, ncclGetErrorString, (ncclResult_t result))                                       \
  X(const char *, ncclGetLastError, (ncclComm_t comm))                                             \
  X(ncclResult_t, ncclCommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank))     \
  X(ncclResult_t, ncclCommInitRankConfig,                                                          \
    (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, void *config))                       \
  X(ncclResult_t, ncclCommSplit,                                                                   \
    (ncclComm_t comm, int color, int key, ncclComm_t *split, void *config))                        \
  X(ncclResult_t, ncclCommDestroy, (ncclComm_t comm))                                              \
  X(ncclResult_t, ncclCommAbort, (ncclComm_t comm))                                                \
  X(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t * error))                  \
  X(ncclResult_t, ncclGroupStart, (void))                                                          \
  X(ncclResult_t, ncclGroupEnd, (void))                                                            \
  X(ncclResult_t, ncclAllReduce,                                                                   \
    (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,           \
     ncclComm_t comm, cudaStream_t stream))                                                        \
  X(ncclResult_t, ncclAllGather,                                                                   \
    (const void *send, void *recv, size_t send_count, ncclDataType_t type, ncclComm_t comm,        \
     cudaStream_t stream))                                                                         \
  X(ncclResult_t, ncclReduceScatter,                                                               \
    (const void *send, void *recv, size_t recv_count, ncclDataType_t type, ncclRedOp_t redop,      \
     ncclComm_t comm, cudaStream_t stream))                                                        \
  X(ncclResult_t, ncclBroadcast,                                                                   \
    (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,   \
     cudaStream_t stream))                                                                         \
  X(ncclResult_t, ncclReduce,                                                                      \
    (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop, int root, \
     ncclComm_t comm, cudaStream_t stream))                                                        \
  X(ncclResult_t, ncclSend,                                                                        \
    (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,               \
     cudaStream_t stream))                                                                         \
  X(ncclResult_t, ncclRecv,                                                                        \
    (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,                     \
     cudaStream_t stream))                                                                         \
  X(ncclResult_t, ncclCommRegister, (ncclComm_t comm, void *buffer, size_t bytes, void **handle))  \
  X(ncclResult_t, ncclCommDeregister, (ncclComm_t comm, void *handle))                             \
  X(ncclResult_t, ncclMemAlloc, (void **memory, size_t bytes))                                     \
  X(ncclResult_t, ncclMemFree, (void *memory))

#define CUDA_FUNCTIONS(X)                                                                          \
  X(const char *, cudaGetErrorString, (cudaError_t error))                                         \
  X(cudaError_t, cudaGetDeviceCount, (int *count))                                                 \
  X(cudaError_t, cudaSetDevice, (int device))                                                      \
  X(cudaError_t, cudaDeviceGetPCIBusId, (char *bus_id, int size, int device))                      \
  X(cudaError_t, cudaDeviceSynchronize, (void))                                                    \
  X(cudaError_t, cudaMalloc, (void **memory, size_t bytes))                                        \
  X(cudaError_t, cudaFree, (void *memory))                                                         \
  X(cudaError_t, cudaMemcpy, (void *to, const void *from, size_t bytes, int kind))                 \
  X(cudaError_t, cudaMemset, (void *memory, int value, size_t bytes))                              \
  X(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags))               \
  X(cudaError_t, cudaStreamSynchronize, (cudaStream_t stream))                                     \
  X(cudaError_t, cudaStreamQuery, (cudaStream_t stream))                                           \
  X(cudaError_t, cudaStreamDestroy, (cudaStream_t stream))                                         \
  X(cudaError_t, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags))    \
  X(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags))                  \
  X(cudaError_t, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream))                        \
  X(cudaError_t, cudaEventSynchronize, (cudaEvent_t event))                                        \
  X(cudaError_t, cudaEventDestroy, (cudaEvent_t event))                                            \
  X(cudaError_t, cudaLaunchHostFunc,                                                               \
    (cudaStream_t stream, void (*function)(void *argument), void *argument))

#define LIBS_DECLARE(result, name, arguments) result(*name) arguments;

extern struct libs {
  NCCL_FUNCTIONS(LIBS_DECLARE)
  CUDA_FUNCTIONS(LIBS_DECLARE)
  cudaError_t (*get_device_properties)(void *properties, int device);
  int nccl_version_code;      /* 22907 for 2.29.7 */
  char nccl_version_text[32]; /* "2.29.7" */
  char nccl_path[512];
} libs;

/* Ends the process with a message if there is no NCCL or no CUDA runtime. */
void libs_open(void);

/* End the process with a message naming `what` unless the result is success. */
void libs_check_nccl(ncclResult_t result, const char *what);
void libs_check_cuda(cudaError_t error, const char *what);
#define NCCL(call) libs_check_nccl(libs.call, #call)
#define CUDA(call) libs_check_cuda(libs.call, #call)

/* The device's name; the emulated GPU is known by it. */
enum { LIBS_NAME_MAX = 256 };
void libs_device_name(int device, char name[LIBS_NAME_MAX]);
bool libs_is_emulated(const char *device_name);

#endif
