/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_found: which releases of NCCL a job may load, as far as this host shows them: the one that
 * the loader finds by name, and those that Python packages bring, of which PyTorch loads one.
 * Owns: libraries, which stay loaded.  Threads: the main thread.  Blocks: on the file system, and
 * as dlopen does.  Fails: cannot. */
#ifndef COMMON_TOOLS_NCCL_FOUND_H
#define COMMON_TOOLS_NCCL_FOUND_H

#include <stdbool.h>

/* Each of these releases, and at least one; false where none is found. `program` is what the job
 * runs, NULL: not known. */
bool nccl_found_all(const char *program, bool is_good(int release, const void *argument),
                    const void *argument);

#endif
