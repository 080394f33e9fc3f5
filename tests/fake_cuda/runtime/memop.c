/* SPDX-License-Identifier: Apache-2.0 */
/* Stream memory operations of the driver API: a stream writes a value, or waits for one. */
#include <sched.h>
#include <stdlib.h>

#include "tests/fake_cuda/runtime/driver.h"
#include "tests/fake_cuda/runtime/stream.h"

struct value_op {
  void *address;
  uint64_t value;
  bool is_wide; /* 64 bits */
  unsigned condition;
};

/* CUstreamWaitValue_flags */
enum { WAIT_GEQ = 0, WAIT_EQ = 1, WAIT_AND = 2, WAIT_NOR = 3 };

static void run_write_value(void *arg) {
  const struct value_op *o = arg;
  if (o->is_wide)
    __atomic_store_n((uint64_t *)o->address, o->value, __ATOMIC_RELEASE);
  else
    __atomic_store_n((uint32_t *)o->address, (uint32_t)o->value, __ATOMIC_RELEASE);
}

static bool is_reached(const struct value_op *o) {
  uint64_t now = o->is_wide ? __atomic_load_n((uint64_t *)o->address, __ATOMIC_ACQUIRE)
                            : __atomic_load_n((uint32_t *)o->address, __ATOMIC_ACQUIRE);
  uint64_t mask = o->is_wide ? UINT64_MAX : UINT32_MAX;
  switch (o->condition) {
  case WAIT_GEQ:
    if (o->is_wide)
      return (int64_t)(now - o->value) >= 0;
    return (int32_t)((uint32_t)now - (uint32_t)o->value) >= 0;
  case WAIT_EQ:
    return now == o->value;
  case WAIT_AND:
    return (now & o->value) != 0;
  default:
    return (~(now | o->value) & mask) != 0;
  }
}

static void run_wait_value(void *arg) {
  while (!is_reached(arg))
    sched_yield();
}

static CUresult submit(CUstream stream, void (*run)(void *), CUdeviceptr address, uint64_t value,
                       bool is_wide, unsigned flags) {
  struct value_op *o = malloc(sizeof *o);
  *o = (struct value_op){ (void *)address, value, is_wide, flags & 3 };
  return (CUresult)stream_submit(stream_resolve(stream), op_new(run, free, o));
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  return submit(stream, run_wait_value, address, value, false, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  return submit(stream, run_wait_value, address, value, true, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, uint32_t value,
                              unsigned flags) {
  return submit(stream, run_write_value, address, value, false, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, uint64_t value,
                              unsigned flags) {
  return submit(stream, run_write_value, address, value, true, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops,
                            unsigned flags) {
  CUresult result = CUDA_SUCCESS;
  (void)flags;
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
    CUdeviceptr address = ops[i].memOp.address;
    unsigned op_flags = ops[i].memOp.flags;
    switch (ops[i].memOp.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      result = cuStreamWaitValue32(stream, address, ops[i].memOp.value, op_flags);
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      result = cuStreamWaitValue64(stream, address, ops[i].memOp.value64, op_flags);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      result = cuStreamWriteValue32(stream, address, ops[i].memOp.value, op_flags);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      result = cuStreamWriteValue64(stream, address, ops[i].memOp.value64, op_flags);
      break;
    default: /* barriers and flushes: a stream is already in order */
      break;
    }
  }
  return result;
}
