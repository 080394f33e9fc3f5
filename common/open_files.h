/* SPDX-License-Identifier: Apache-2.0 */
/* open_files: how many descriptors this process may have (RLIMIT_NOFILE), and how many it has.
 * Owns: nothing.  Threads: any.  Blocks: never; it asks the kernel through /proc, which before
 * Linux 6.2 takes longer the more there are. Fails: cannot; where /proc does not tell, half of the
 * limit counts as used. */
#ifndef COMMON_OPEN_FILES_H
#define COMMON_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct open_files {
  uint64_t limit, used; /* used is never more than limit */
};
/* The soft limit alone: one system call. */
uint64_t open_files_limit(void);
struct open_files open_files_count(void);

/* Raises the soft limit towards the hard one, unless STRATUS_RAISE_NOFILE is 0; says so once. */
void open_files_raise(void);

#define OPEN_FILES_TEXT 200
/* -EMFILE or -ENFILE: there is no descriptor left. */
bool open_files_are_short(int error);
/* What a negative errno means; of these two, how many descriptors there are and what to do. */
const char *open_files_why(int error, char text[OPEN_FILES_TEXT]);

#endif
