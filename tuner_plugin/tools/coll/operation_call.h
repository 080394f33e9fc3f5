/* SPDX-License-Identifier: Apache-2.0 */
/* operation_call: calls NCCL for one of the seven operations.
 * Owns: nothing.  Threads: one.
 * Blocks: as NCCL's calls do.  Fails: ends the process with NCCL's message. */
#ifndef COLL_OPERATION_CALL_H
#define COLL_OPERATION_CALL_H

#include "tuner_plugin/tools/coll/nccl_api.h"
#include "tuner_plugin/tools/coll/operation.h"

/* One call for one rank: everything NCCL needs. */
struct operation_call {
  enum operation operation;
  const void *send;
  void *recv;
  size_t count;
  enum element_type type;
  ncclRedOp_t redop;
  int root, rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
};

void operation_run(const struct operation_call *call);

#endif
