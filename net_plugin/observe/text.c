/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. */
#include "net_plugin/observe/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_FIRST_BYTES = 4096 };

/* Room for so much and the end. */
static bool make_room(struct text *text, size_t bytes) {
  size_t size = text->size ? text->size : TEXT_FIRST_BYTES;
  while (size <= text->used + bytes) {
    size *= 2;
  }
  char *larger = size > text->size ? realloc(text->bytes, size) : text->bytes;
  if (larger) {
    text->bytes = larger;
    text->size = size;
  }
  return larger;
}

void text_add(struct text *text, const char *format, ...) {
  for (bool is_again = false; !text->is_full; is_again = true) {
    size_t room = text->size - text->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(room ? text->bytes + text->used : NULL, room, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < room) {
      text->used += (size_t)length;
      return;
    }
    text->is_full = length < 0 || is_again || !make_room(text, (size_t)length);
  }
}

void text_free(struct text *text) {
  free(text->bytes);
  *text = (struct text){ 0 };
}

void text_add_number(struct text *text, double value) {
  if (!isfinite(value)) {
    value = 0;
  }
  bool is_whole = value == floor(value) && fabs(value) < 1e18;
  text_add(text, is_whole ? "%.0f" : "%.9g", value);
}

/* Each byte becomes at most six. */
void text_add_json_string(struct text *text, const char *value) {
  text_add(text, "\"");
  for (; *value; value++) {
    unsigned char c = (unsigned char)*value;
    if (c == '"' || c == '\\') {
      text_add(text, "\\%c", c);
    } else if (c == '\n') {
      text_add(text, "\\n");
    } else if (c >= 0x7f) {
      text_add(text, "?");
    } else if (c < 0x20) {
      text_add(text, "\\u%04x", c);
    } else {
      text_add(text, "%c", c);
    }
  }
  text_add(text, "\"");
}
