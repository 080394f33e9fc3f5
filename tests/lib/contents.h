/* SPDX-License-Identifier: Apache-2.0 */
/* contents: what benchmarks send: the bytes of a file, or invented ones that compress as well as
 * those of training do.
 * Owns: the bytes, until contents_free.  Threads: any, after contents_load.
 * Blocks: contents_load, to read a file.  Fails: as stated. */
#ifndef TESTS_LIB_CONTENTS_H
#define TESTS_LIB_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

/* bf16, f32: numbers like gradients, whose exponents have as many bits (codec/README.md). */
#define CONTENTS_WORDS "bf16|f32|random|zeros"

struct contents {
  uint8_t *bytes;
  size_t size;
};

enum { CONTENTS_ERROR_MAX = 256 };

/* One of the words, else the name of a file. 0, or a negative errno and a text that says what is
 * wrong with which file. */
int contents_load(struct contents *contents, const char *what, char error[CONTENTS_ERROR_MAX]);
void contents_free(struct contents *contents);

/* The bytes from `offset` on; behind the last comes the first. */
void contents_copy(const struct contents *contents, uint64_t offset, void *to, size_t bytes);

#endif
