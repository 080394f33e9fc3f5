/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. */
#include "net_plugin/observe/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_init(struct text *text, char *bytes, size_t size) {
  *text = (struct text){ .bytes = bytes, .size = size };
  bytes[0] = '\0';
}

void text_add(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text->bytes + text->used, text_room(text), format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= text_room(text)) {
    text->bytes[text->used] = '\0';
    text->is_full = true;
  } else {
    text->used += (size_t)length;
  }
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
