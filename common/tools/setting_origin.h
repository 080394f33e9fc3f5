/* SPDX-License-Identifier: Apache-2.0 */
/* setting_origin: who has set a variable, where this host shows it.
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.
 * Fails: the environment is named, and no more. */
#ifndef COMMON_TOOLS_SETTING_ORIGIN_H
#define COMMON_TOOLS_SETTING_ORIGIN_H

#include "common/nccl_conf.h"

enum { SETTING_ORIGIN_MAX = PATH_MAX + 128 };

/* A file with its line, "the environment", and of that the container's own, or Slurm's prolog.
 * Returns `text`. */
const char *setting_origin(const char *name, const struct nccl_conf_setting *setting,
                           char text[SETTING_ORIGIN_MAX]);

#endif
