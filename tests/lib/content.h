/* SPDX-License-Identifier: Apache-2.0 */
/* content: what tests send: bytes that tell which message they are of, and which place in it.
 * Owns: two tables of them, as long as the process lasts.  Threads: any.
 * Blocks: never.  Fails: the test, for more than CONTENT_MAX bytes.
 *
 * Buffers are filled and compared as a whole, not byte by byte: under a sanitizer, which looks at
 * every access of ours, that took more time than all that was tested, and it looks at all bytes of
 * a memcpy or memcmp just the same. */
#ifndef TESTS_LIB_CONTENT_H
#define TESTS_LIB_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTENT_MAX = 3 << 20 };

/* From now on one byte in four is the same everywhere, so that the codec can shorten the rest; or
 * not so any more, as it is at first. */
void content_set_codable(bool is_codable);
void content_fill(uint64_t message, uint8_t *buffer, size_t bytes);

/* The place of the first byte that is another one; `bytes`: there is none. Messages that are not a
 * multiple of 128 apart differ everywhere. */
size_t content_differs(uint64_t message, const uint8_t *buffer, size_t bytes);

#endif
