/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file: the text of a job secret, which may be in a file, and what makes one acceptable.
 * Owns: nothing; the caller wipes the text (hash_wipe).  Threads: any.  Blocks: while the file is
 * read: a FIFO, until its writer closes it.  Fails: negative errno. */
#ifndef COMMON_SECRET_FILE_H
#define COMMON_SECRET_FILE_H

#include <sys/types.h>

enum {
  /* 64 characters are enough (openssl rand -hex 32); a longer file is not what the user meant. */
  SECRET_FILE_MAX = 4096,
  /* Whoever sees a proof can try secrets at leisure, so that they must not be guessable. */
  SECRET_MIN = 16,
};

/* The file without the newlines at its end: its size. -EPERM if it is open to others: to group or
 * others where it is this user's, as ssh has it for keys; to others where it is not (a volume's may
 * be there for a group). -ENODATA if nothing is left, -EFBIG from SECRET_FILE_MAX bytes on. */
ssize_t secret_file_read(const char *path, char text[SECRET_FILE_MAX]);
/* A job's secret: the text that was set, else what is in the file; STRATUS_SECRET and
 * STRATUS_SECRET_FILE, NULL or empty if not set. */
struct job_secret {
  const char *name; /* of the variable that counts */
  const char *text; /* `text` of the call, or `read` */
  ssize_t bytes;    /* 0: there is none; negative errno of the file */
};
struct job_secret job_secret_choose(const char *text, const char *path, char read[SECRET_FILE_MAX]);

/* What such an error means, and for -EPERM what to do. */
const char *secret_file_error(ssize_t error);

#endif
