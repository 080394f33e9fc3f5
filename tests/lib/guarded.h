/* SPDX-License-Identifier: Apache-2.0 */
/* guarded: memory between two pages that nobody may touch, for what must not be read or written
 * beyond its length by a byte; it shows without a sanitizer, too.
 * Owns: the mapping, until guarded_free.  Threads: one.  Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_GUARDED_H
#define TESTS_LIB_GUARDED_H

#include <stddef.h>
#include <stdint.h>

struct guarded {
  uint8_t *begin; /* behind a guard */
  size_t room;    /* whole pages, up to a guard */
};

/* At least so many bytes. */
struct guarded guarded_make(size_t bytes);
void guarded_free(struct guarded *guarded);

/* The last `bytes` bytes: one more is in the guard. */
static inline uint8_t *guarded_end(const struct guarded *guarded, size_t bytes) {
  return guarded->begin + guarded->room - bytes;
}

#endif
