/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_api: the part of NCCL's and the CUDA runtime's public API that the benchmark calls.
 *
 * Declared here because no header of either need be on the machine, and one binary serves every
 * release: functions are looked up at run time. Only public, documented functions are used (nccl.h
 * of 2.19 and later, the CUDA 12 and 13 runtime API). */
#ifndef COLL_NCCL_API_H
#define COLL_NCCL_API_H

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

#endif
