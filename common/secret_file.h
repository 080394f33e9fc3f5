/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file: the text of a job secret in a file.
 * Owns: nothing; the caller wipes the text (hash_wipe).  Threads: any.  Blocks: while the file is
 * read.  Fails: negative errno. */
#ifndef COMMON_SECRET_FILE_H
#define COMMON_SECRET_FILE_H

#include <sys/types.h>

/* 64 characters are enough (openssl rand -hex 32); a longer file is not what the user meant. */
enum { SECRET_FILE_MAX = 4096 };

/* The file without the newlines at its end: its size; -ENODATA if nothing is left, -EFBIG from
 * SECRET_FILE_MAX bytes on. `mode`: that of the file, once it is open; else 0. */
ssize_t secret_file_read(const char *path, char text[SECRET_FILE_MAX], mode_t *mode);

#endif
