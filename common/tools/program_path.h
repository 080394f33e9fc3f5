/* SPDX-License-Identifier: Apache-2.0 */
/* program_path: where a program is that a command names.
 * Owns: nothing.  Threads: any.  Blocks: on the file system.  Fails: false. */
#ifndef COMMON_TOOLS_PROGRAM_PATH_H
#define COMMON_TOOLS_PROGRAM_PATH_H

#include <limits.h>
#include <stdbool.h>

/* As a shell finds it; a name with a '/' is a path. */
bool program_path_find(const char *name, char path[PATH_MAX]);

/* What is above its directory: "/usr" of "/usr/bin/python3". In place. */
void program_path_to_prefix(char path[PATH_MAX]);

#endif
