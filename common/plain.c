/* SPDX-License-Identifier: Apache-2.0 */
/* See plain.h. */
#include "common/plain.h"

#include <stdio.h>
#include <string.h>

enum { ESCAPE_MAX = 5 }; /* "\x7f" */

static int escape(unsigned char byte, char text[ESCAPE_MAX]) {
  static const char plain[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
  const char *found = memchr(plain, byte, sizeof plain - 1);
  if (found) {
    return snprintf(text, ESCAPE_MAX, "\\%c", letters[found - plain]);
  }
  return snprintf(text, ESCAPE_MAX, byte < ' ' || byte > '~' ? "\\x%02x" : "%c", byte);
}

const char *quote(const char *value, char text[QUOTE_MAX]) {
  static const char end[] = "...\"";
  size_t used = 1;
  text[0] = '"';
  for (; *value; value++) {
    char escaped[ESCAPE_MAX];
    size_t length = (size_t)escape((unsigned char)*value, escaped);
    if (used + length + sizeof end > QUOTE_MAX) {
      memcpy(text + used, end, sizeof end);
      return text;
    }
    memcpy(text + used, escaped, length);
    used += length;
  }
  memcpy(text + used, "\"", 2);
  return text;
}
