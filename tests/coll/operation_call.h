/* SPDX-License-Identifier: Apache-2.0 */
/* operation_call: calls NCCL for one of the seven operations.
 * Owns: nothing.  Threads: one.
 * Blocks: as NCCL's calls do.  Fails: ends the process with NCCL's message. */
#ifndef COLL_OPERATION_CALL_H
#define COLL_OPERATION_CALL_H

#include "tests/coll/nccl_api.h"
#include "tests/coll/operation.h"

/* What a rank sends to another one, or receives from it, within a group of such calls. */
struct operation_transfer {
  bool is_send;
  int peer;
  size_t count, first; /* elements, and where the first one is in the buffer */
  uint64_t place;      /* for checks: of the first one in the pattern that the sender fills in */
};

/* One call for one rank: everything NCCL needs. */
struct operation_call {
  enum operation operation;
  const void *send;
  void *recv;
  size_t count;
  enum element_type type;
  enum pattern_redop redop;
  int root, rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  /* Of sendrecv and alltoall, instead of `count`: what this rank does. NULL: all do the same. */
  const struct operation_transfer *transfers;
  size_t transfer_count;
};

void operation_run(const struct operation_call *call);

#endif
