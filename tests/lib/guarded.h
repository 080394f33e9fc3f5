/* SPDX-License-Identifier: Apache-2.0 */
/* guarded: memory between two pages that cannot be touched, so that a read or write beyond either
 * end is a fault, by vector instructions and without sanitizers too. Owns: the memory, until
 * guarded_free.  Threads: any.  Blocks: never.  Fails: assertion. */
#ifndef TESTS_LIB_GUARDED_H
#define TESTS_LIB_GUARDED_H

#include <stddef.h>

struct guarded {
  unsigned char *start, *end;
};
/* At least so many bytes; whole pages. */
struct guarded guarded_new(size_t bytes);
void guarded_free(struct guarded *memory);

#endif
