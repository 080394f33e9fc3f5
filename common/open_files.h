/* SPDX-License-Identifier: Apache-2.0 */
/* open_files: the limit of open descriptors (RLIMIT_NOFILE), and how many there are.
 * Owns: nothing.  Threads: any.  Blocks: never; it asks the kernel through /proc, which before
 * Linux 6.2 takes longer the more there are. Fails: cannot; without /proc, half of the
 * limit counts as used. */
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
/* The text of a negative errno; for these two with the number of descriptors and a remedy. */
const char *open_files_why(int error, char text[OPEN_FILES_TEXT]);

#endif
