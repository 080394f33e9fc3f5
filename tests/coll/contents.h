/* SPDX-License-Identifier: Apache-2.0 */
/* contents: what ranks send with --data: the bytes of a file, over and over.
 * Owns: the bytes, until the process ends.  Threads: any, after contents_read.
 * Blocks: on the file.  Fails: contents_read ends the process with a message. */
#ifndef COLL_CONTENTS_H
#define COLL_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

struct contents {
  const uint8_t *bytes;
  size_t size;
};

struct contents contents_read(const char *path);

/* The bytes from `offset` on; behind the last comes the first. */
void contents_copy(const struct contents *contents, size_t offset, void *to, size_t bytes);

#endif
