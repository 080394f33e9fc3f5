/* SPDX-License-Identifier: Apache-2.0 */
/* open_files: the limit of open descriptors (RLIMIT_NOFILE).
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_OPEN_FILES_H
#define COMMON_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* The soft limit: one system call. */
uint64_t open_files_limit(void);

/* Raises the soft limit towards the hard one; logs it once. */
void open_files_raise(void);

#define OPEN_FILES_TEXT 200
/* -EMFILE or -ENFILE: there is no descriptor left. */
bool open_files_are_short(int error);
/* The text of a negative errno; for these two with the limit and a remedy. */
const char *open_files_why(int error, char text[OPEN_FILES_TEXT]);

#endif
