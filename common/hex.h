/* SPDX-License-Identifier: Apache-2.0 */
/* hex: bytes as two lower case digits each (libsodium).
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: hex_read. */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

#include <sodium/utils.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `text` has room for 2 * count + 1. */
static inline void hex_write(const void *bytes, size_t count, char *text) {
  sodium_bin2hex(text, 2 * count + 1, bytes, count);
}

/* False unless the text is just that many bytes. */
static inline bool hex_read(const char *text, void *bytes, size_t count) {
  size_t read = 0;
  return strlen(text) == 2 * count &&
         sodium_hex2bin(bytes, count, text, 2 * count, NULL, &read, NULL) == 0 && read == count;
}

#endif
