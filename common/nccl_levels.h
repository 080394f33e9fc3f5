/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_levels: the numbers of the log levels of the library that a logger lies in.
 * Owns: nothing.  Threads: any.  Blocks: as the loader does.  Fails: cannot; NCCL's own then. */
#ifndef COMMON_NCCL_LEVELS_H
#define COMMON_NCCL_LEVELS_H

#include "common/log.h"
#include "common/nccl_version.h"

/* What `logger` takes for this level. Kept for the logger that was asked for last. */
int nccl_level(nccl_version_any_fn *logger, enum log_level level);

#endif
