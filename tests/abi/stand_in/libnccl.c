/* SPDX-License-Identifier: Apache-2.0 */
/* A library that owns what NCCL hands to plugins, and can be unloaded as NCCL can. */
#include <stdarg.h>
#include <stdio.h>

#include "net_plugin/abi/net_abi.h"

#ifndef STAND_IN_WARN
#define STAND_IN_WARN NCCL_LOG_WARN
#endif
#define EXPORTED __attribute__((visibility("default")))

extern int nccl_warnings;
EXPORTED int nccl_warnings; /* atomic */

void nccl_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                 const char *format, ...);
EXPORTED void nccl_logger(enum nccl_log_level level, unsigned long flags, const char *file,
                          int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stdout, format, arguments);
  va_end(arguments);
  fputc('\n', stdout);
  __atomic_add_fetch(&nccl_warnings, (int)level == STAND_IN_WARN, __ATOMIC_RELAXED);
}
