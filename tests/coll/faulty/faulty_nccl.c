/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_nccl: an NCCL that does its work wrongly, to show that the benchmark sees it.
 *
 * It is put where NCCL is looked for (NCCL_HOME) and stands before the real one, which it needs as
 * libnccl.so.2 from LD_LIBRARY_PATH. The collectives below pass through it; all else is found in
 * the real library behind it. FAULTY_NCCL chooses the fault, which every rank commits:
 *
 *   skip      the operation is not done, and success is reported
 *   short     the last element is left out
 *   shift     data is taken from one byte too far
 *   byte      one byte in the middle of the result is set to 0xee
 *   redop     max is computed in place of sum
 *   past      the byte after the result is written
 *   before    the byte before the result is written */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/coll/element.h"
#include "tests/coll/nccl_api.h"

#define EXPORT __attribute__((visibility("default")))

/* The next function of this name: NCCL's or the CUDA runtime's own. */
#define NEXT(name, type) ((type)next(name))

static void *next(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  if (!function) {
    fprintf(stderr, "faulty_nccl: no %s behind this library\n", name);
    abort();
  }
  return function;
}

static bool has_fault(const char *name) {
  const char *fault = getenv("FAULTY_NCCL");
  return fault && !strcmp(fault, name);
}

static size_t wrong_count(size_t count) {
  return has_fault("short") && count ? count - 1 : count;
}

static const void *wrong_send(const void *send) {
  return has_fault("shift") ? (const char *)send + 1 : send;
}

static ncclRedOp_t wrong_redop(ncclRedOp_t redop) {
  return has_fault("redop") && redop == ncclSum ? ncclMax : redop;
}

/* Spoils a result of `bytes` when the stream gets there. */
static ncclResult_t spoil(ncclResult_t result, void *recv, size_t bytes, cudaStream_t stream) {
  typedef cudaError_t (*memset_async)(void *, int, size_t, cudaStream_t);
  memset_async set = NEXT("cudaMemsetAsync", memset_async);
  char *at = recv;
  if (result == ncclSuccess && has_fault("byte") && bytes)
    set(at + bytes / 2, 0xee, 1, stream);
  if (result == ncclSuccess && has_fault("past"))
    set(at + bytes, 0xee, 1, stream);
  if (result == ncclSuccess && has_fault("before"))
    set(at - 1, 0xee, 1, stream);
  return result;
}

static size_t bytes_of(size_t count, ncclDataType_t type) {
  return count * element_infos[type].size_bytes;
}

EXPORT ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                                  ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream);
EXPORT ncclResult_t ncclAllGather(const void *send, void *recv, size_t send_count,
                                  ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
EXPORT ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t recv_count,
                                      ncclDataType_t type, ncclRedOp_t redop, ncclComm_t comm,
                                      cudaStream_t stream);
EXPORT ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t comm, cudaStream_t stream);
EXPORT ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t redop, int root, ncclComm_t comm, cudaStream_t stream);
EXPORT ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream);
EXPORT ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream);

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream) {
  typedef ncclResult_t (*function)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t);
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT("ncclAllReduce", function)(wrong_send(send), recv, wrong_count(count),
                                                        type, wrong_redop(redop), comm, stream);
  return spoil(result, recv, bytes_of(count, type), stream);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t send_count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  typedef ncclResult_t (*function)(const void *, void *, size_t, ncclDataType_t, ncclComm_t,
                                   cudaStream_t);
  typedef ncclResult_t (*comm_count)(ncclComm_t, int *);
  int ranks = 1;
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT("ncclAllGather", function)(
      wrong_send(send), recv, wrong_count(send_count), type, comm, stream);
  if (NEXT("ncclCommCount", comm_count)(comm, &ranks))
    abort();
  return spoil(result, recv, bytes_of(send_count, type) * (size_t)ranks, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t recv_count, ncclDataType_t type,
                               ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream) {
  typedef ncclResult_t (*function)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t);
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT("ncclReduceScatter", function)(
      wrong_send(send), recv, wrong_count(recv_count), type, wrong_redop(redop), comm, stream);
  return spoil(result, recv, bytes_of(recv_count, type), stream);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  typedef ncclResult_t (*function)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t,
                                   cudaStream_t);
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT("ncclBroadcast", function)(wrong_send(send), recv, wrong_count(count),
                                                        type, root, comm, stream);
  return spoil(result, recv, bytes_of(count, type), stream);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t redop, int root, ncclComm_t comm, cudaStream_t stream) {
  typedef ncclResult_t (*function)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int,
                                   ncclComm_t, cudaStream_t);
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT("ncclReduce", function)(wrong_send(send), recv, wrong_count(count),
                                                     type, wrong_redop(redop), root, comm, stream);
  return spoil(result, recv, bytes_of(count, type), stream);
}

/* Within a group the transfer comes later than anything put into the stream here: only what is
 * sent can be made wrong. */
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  typedef ncclResult_t (*function)(const void *, size_t, ncclDataType_t, int, ncclComm_t,
                                   cudaStream_t);
  if (has_fault("skip"))
    return ncclSuccess;
  return NEXT("ncclSend", function)(wrong_send(send), wrong_count(count), type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  typedef ncclResult_t (*function)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  if (has_fault("skip"))
    return ncclSuccess;
  return NEXT("ncclRecv", function)(recv, wrong_count(count), type, peer, comm, stream);
}
