/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_conf: NCCL's configuration files, /etc/nccl.conf and ~/.nccl.conf: lines NAME=value, '#' at
 * the start of a line is a comment, the first line for a name counts, the environment counts more
 * (src/misc/param.cc at v2.30.7-1).
 *
 * What is added stands between two marks, and is taken out between them again: all other bytes of
 * the file stay as they are. A file is replaced in one step, so NCCL reads the old or the new one.
 *
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.
 * Fails: negative errno, with a text. */
#ifndef COMMON_TOOLS_NCCL_CONF_H
#define COMMON_TOOLS_NCCL_CONF_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { NCCL_CONF_VALUE_MAX = 1024, NCCL_CONF_WHY_MAX = PATH_MAX + 1024 };

struct nccl_conf_line {
  const char *name;
  const char *value;
};

/* What the user has set in this file, outside of the marks, as NCCL reads it; false if there is
 * nothing, or the file cannot be read. */
bool nccl_conf_read(const char *path, const char *name, char value[NCCL_CONF_VALUE_MAX]);

/* The same in NCCL_CONF_FILE or ~/.nccl.conf, else in /etc/nccl.conf; `where` is the file. */
bool nccl_conf_find(const char *name, char value[NCCL_CONF_VALUE_MAX], char where[PATH_MAX]);

/* The user's file, as NCCL finds it; in the home that the user database
 * says; false without NCCL_CONF_FILE and such a user. */
bool nccl_conf_user_file(char path[PATH_MAX]);

/* Both of these follow symbolic links, as root only its own (conf_place.h): -EPERM. */

/* Adds the lines before all others, so that they count, in the place of those that an earlier call
 * added. -EINVAL: a mark is missing. */
int nccl_conf_write(const char *path, const struct nccl_conf_line *lines, size_t count,
                    char why_not[NCCL_CONF_WHY_MAX]);

/* Takes back what was added; a file that nccl_conf_write made goes. Nothing to take back is no
 * error: *is_changed is false. */
int nccl_conf_remove(const char *path, bool *is_changed, char why_not[NCCL_CONF_WHY_MAX]);

#endif
