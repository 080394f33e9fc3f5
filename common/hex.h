/* SPDX-License-Identifier: Apache-2.0 */
/* hex: bytes as two lower case digits each.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: hex_read. */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `text` has room for 2 * count + 1. */
static inline void hex_write(const void *bytes, size_t count, char *text) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < count; i++) {
    uint8_t byte = ((const uint8_t *)bytes)[i];
    *text++ = digits[byte >> 4];
    *text++ = digits[byte & 15];
  }
  *text = '\0';
}

/* -1: none. */
static inline int hex_digit(char digit) {
  return digit >= '0' && digit <= '9'   ? digit - '0'
         : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
         : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                        : -1;
}

/* False unless the text is just that many bytes. */
static inline bool hex_read(const char *text, void *bytes, size_t count) {
  if (strlen(text) != 2 * count) {
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return false;
    }
    ((uint8_t *)bytes)[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

#endif
