/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_version: which release of NCCL has loaded this code, or is installed.
 * Owns: nothing.  Threads: any.  Blocks: as the loader does.  Fails: 0 if it cannot be told; levels
 * are NCCL's own then. */
#ifndef COMMON_NCCL_VERSION_H
#define COMMON_NCCL_VERSION_H

#include "common/log.h"

typedef void nccl_version_any_fn(void);

/* As ncclGetVersion counts: 22203 is 2.22.3. `of_nccl` is any function of NCCL's own, such as the
 * logger that it passes; NULL looks among what is loaded for all. */
int nccl_version_find(nccl_version_any_fn *of_nccl);

/* Of the NCCL that the loader finds by name, which stays loaded; for tools, in their main thread.
 * Frameworks may bring another. */
int nccl_version_installed(void);

/* The same of a library by its name or path. */
int nccl_version_of_library(const char *library);

/* What `logger` takes for this level. Kept for the logger that was asked for last. */
int nccl_level(nccl_version_any_fn *logger, enum log_level level);

#endif
