/* SPDX-License-Identifier: Apache-2.0 */
/* conf_block: our lines in a configuration file of NCCL (common/nccl_conf.h).
 *
 * They stand between two marks, before all others, so that they count. They are taken out by what
 * they are: all other bytes of the file stay, also a line that somebody has put, or changed,
 * between the marks. A file is replaced in one step, so NCCL reads the old or the new one.
 *
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.
 * Fails: negative errno, with a text that says what to do; the file is as it was. */
#ifndef COMMON_TOOLS_CONF_BLOCK_H
#define COMMON_TOOLS_CONF_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/nccl_conf.h"

enum { CONF_BLOCK_WHY_MAX = PATH_MAX + 1024 };

struct conf_block_line {
  const char *name;
  const char *value;
};

/* What the file sets beside our lines, with the number of the line; false if nothing, or the file
 * cannot be read. */
bool conf_block_read_others(const char *path, const char *name, char value[NCCL_CONF_VALUE_MAX],
                            unsigned *line);

/* Both of these follow symbolic links, as root only its own: -EPERM. */

/* Adds the lines, in the place of those that an earlier call added. -EINVAL: a mark is missing. */
int conf_block_write(const char *path, const struct conf_block_line *lines, size_t count,
                     char why_not[CONF_BLOCK_WHY_MAX]);

struct conf_block_removed {
  bool has_block;      /* false: there was nothing to take back */
  unsigned kept_lines; /* not ours, of between the marks */
};

/* Takes back what was added; a file that conf_block_write made goes when nothing else is in it. */
int conf_block_remove(const char *path, struct conf_block_removed *removed,
                      char why_not[CONF_BLOCK_WHY_MAX]);

#endif
