/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_abi: what all of NCCL's plugin interfaces share: results and the log, as facts.
 * Owns: nothing; types only.  Threads: any.  Blocks: never.  Fails: at compile time.
 *
 * Source: NVIDIA/nccl at tag v2.30.7-1; values unchanged since v2.19.3-1. */
#ifndef COMMON_NCCL_ABI_H
#define COMMON_NCCL_ABI_H

/* ncclResult_t, src/nccl.h.in:44-53. */
enum nccl_result {
  NCCL_SUCCESS = 0,
  NCCL_UNHANDLED_CUDA_ERROR = 1,
  NCCL_SYSTEM_ERROR = 2,
  NCCL_INTERNAL_ERROR = 3,
  NCCL_INVALID_ARGUMENT = 4,
  NCCL_INVALID_USAGE = 5,
  NCCL_REMOTE_ERROR = 6,
};

/* ncclDebugLogLevel and ncclDebugLogSubSys, src/include/nccl_common.h:27-56. */
enum nccl_log_level { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3, NCCL_LOG_TRACE = 5 };
enum { NCCL_SUBSYSTEM_INIT = 0x1, NCCL_SUBSYSTEM_NET = 0x10, NCCL_SUBSYSTEM_TUNING = 0x40 };

/* ncclDebugLogger_t, src/include/nccl_common.h:58. */
typedef void nccl_logger_fn(enum nccl_log_level level, unsigned long flags, const char *file,
                            int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
