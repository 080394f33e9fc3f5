/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_nccl: an NCCL that does its work wrongly, to show that the benchmark sees it.
 *
 * By LD_PRELOAD it stands before the real one: the collectives below pass through it. FAULTY_NCCL
 * chooses the fault, which every rank commits:
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
#include "tests/coll/libs.h"

/* The next function of this name: NCCL's or the CUDA runtime's own. */
#define NEXT(name) ((name##_t *)next(#name))

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
  memset_async set = (memset_async)next("cudaMemsetAsync");
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

#define DECLARE(result, name, arguments)                                                           \
  typedef result name##_t arguments;                                                               \
  __attribute__((visibility("default"))) result name arguments;
NCCL_FUNCTIONS(DECLARE)

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream) {
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT(ncclAllReduce)(wrong_send(send), recv, wrong_count(count), type,
                                            wrong_redop(redop), comm, stream);
  return spoil(result, recv, bytes_of(count, type), stream);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t send_count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  int ranks = 1;
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result =
      NEXT(ncclAllGather)(wrong_send(send), recv, wrong_count(send_count), type, comm, stream);
  if (((ncclResult_t(*)(ncclComm_t, int *))next("ncclCommCount"))(comm, &ranks))
    abort();
  return spoil(result, recv, bytes_of(send_count, type) * (size_t)ranks, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t recv_count, ncclDataType_t type,
                               ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream) {
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT(ncclReduceScatter)(wrong_send(send), recv, wrong_count(recv_count),
                                                type, wrong_redop(redop), comm, stream);
  return spoil(result, recv, bytes_of(recv_count, type), stream);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result =
      NEXT(ncclBroadcast)(wrong_send(send), recv, wrong_count(count), type, root, comm, stream);
  return spoil(result, recv, bytes_of(count, type), stream);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t redop, int root, ncclComm_t comm, cudaStream_t stream) {
  if (has_fault("skip"))
    return ncclSuccess;
  ncclResult_t result = NEXT(ncclReduce)(wrong_send(send), recv, wrong_count(count), type,
                                         wrong_redop(redop), root, comm, stream);
  return spoil(result, recv, bytes_of(count, type), stream);
}

/* Within a group the transfer comes later than anything put into the stream here: only what is
 * sent can be made wrong. */
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (has_fault("skip"))
    return ncclSuccess;
  return NEXT(ncclSend)(wrong_send(send), wrong_count(count), type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (has_fault("skip"))
    return ncclSuccess;
  return NEXT(ncclRecv)(recv, wrong_count(count), type, peer, comm, stream);
}
