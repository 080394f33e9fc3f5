/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a line of a profile: blanks, words, quotes, numbers. */
#include "common/profile_scan.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/quantity.h"

/* ---- errors ---- */

int scan_fail(struct scan *scan, const char *at, const char *format, ...) {
  struct profile_error *error = scan->error;
  if (scan_status(scan) == 0) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->line = scan->line;
    error->column = at ? (int)(at - scan->line_start) + 1 : 0;
  }
  return -EINVAL;
}

int scan_status(const struct scan *scan) {
  return scan->error->text[0] ? -EINVAL : 0;
}

/* ---- words in a line ---- */

static bool is_blank(char byte) {
  return byte == ' ' || byte == '\t';
}

struct scan_span scan_trim(struct scan_span span) {
  while (span.length > 0 && is_blank(span.at[0])) {
    span.at++;
    span.length--;
  }
  while (span.length > 0 && is_blank(span.at[span.length - 1])) {
    span.length--;
  }
  return span;
}

struct scan_span scan_strip_comment(struct scan_span line) {
  bool is_quoted = false;
  for (size_t i = 0; i < line.length; i++) {
    if (line.at[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line.at[i] == '#' && !is_quoted && (i == 0 || is_blank(line.at[i - 1]))) {
      line.length = i;
    }
  }
  return line;
}

struct scan_span scan_take_word(struct scan_span *line) {
  *line = scan_trim(*line);
  struct scan_span word = { line->at, 0 };
  while (word.length < line->length && !is_blank(line->at[word.length])) {
    word.length++;
  }
  line->at += word.length;
  line->length -= word.length;
  return word;
}

bool scan_is(struct scan_span span, const char *text) {
  return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

bool scan_copy(struct scan_span span, char *text, size_t text_bytes) {
  if (span.length >= text_bytes) {
    return false;
  }
  memcpy(text, span.at, span.length);
  text[span.length] = '\0';
  return true;
}

/* ---- values ---- */

int scan_number(struct scan *scan, struct scan_span word, const char *what, uint32_t low,
                uint32_t high, bool is_size, uint32_t *number) {
  char text[SCAN_TOKEN_MAX];
  uint64_t size = 0;
  int64_t plain = 0;
  int result = -EINVAL;
  if (scan_copy(word, text, sizeof text)) {
    result = is_size ? quantity_parse_size(text, &size) : quantity_parse_int(text, &plain);
  }
  uint64_t value = is_size ? size : (uint64_t)plain;
  if (result == 0 && value >= low && value <= high) {
    *number = (uint32_t)value;
    return 0;
  }
  if (is_size) {
    char low_text[QUANTITY_TEXT_MAX];
    char high_text[QUANTITY_TEXT_MAX];
    return scan_fail(scan, word.at, "%s takes a size from %s to %s, not \"%.*s\"", what,
                     quantity_format_size(low, low_text), quantity_format_size(high, high_text),
                     SCAN_ARGS(word));
  }
  return scan_fail(scan, word.at, "%s takes a number from %" PRIu32 " to %" PRIu32 ", not \"%.*s\"",
                   what, low, high, SCAN_ARGS(word));
}

int scan_milli(struct scan *scan, struct scan_span word, const char *what, uint32_t high,
               uint64_t *milli) {
  uint64_t value = 0;
  size_t i = 0, places = 0;
  for (; i < word.length && isdigit((unsigned char)word.at[i]) && value <= high; i++) {
    value = value * 10 + (uint64_t)(word.at[i] - '0');
  }
  bool is_good = i > 0;
  if (is_good && i < word.length && word.at[i] == '.') {
    for (i++; i < word.length && isdigit((unsigned char)word.at[i]) && places < 3; i++, places++) {
      value = value * 10 + (uint64_t)(word.at[i] - '0');
    }
    is_good = places > 0;
  }
  for (; places < 3; places++) {
    value *= 10;
  }
  if (!is_good || i < word.length || value > (uint64_t)high * 1000) {
    return scan_fail(scan, word.at,
                     "%s takes a number from 0 to %" PRIu32
                     " with up to three decimals, not \"%.*s\"",
                     what, high, SCAN_ARGS(word));
  }
  *milli = value;
  return 0;
}

/* "tree, ring, pat" for an error. */
static const char *join_words(const char *const *words, char *text, size_t text_bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; words[i] && used < text_bytes; i++) {
    int written = snprintf(text + used, text_bytes - used, "%s%s", i > 0 ? ", " : "", words[i]);
    used += written > 0 ? (size_t)written : 0;
  }
  return text;
}

int scan_word(struct scan *scan, struct scan_span word, const char *what,
              const char *const *words) {
  for (int i = 0; words[i]; i++) {
    if (word.length == strlen(words[i]) && strncasecmp(word.at, words[i], word.length) == 0) {
      return i;
    }
  }
  char text[256];
  scan_fail(scan, word.at, "%s takes %s, not \"%.*s\"", what, join_words(words, text, sizeof text),
            SCAN_ARGS(word));
  return 0;
}

int scan_version(struct scan *scan, struct scan_span value, const char *name, int patch,
                 int *version) {
  char text[SCAN_TOKEN_MAX] = "";
  int numbers[3] = { 0, 0, patch };
  int count = 0;
  bool is_good = scan_copy(value, text, sizeof text);
  char *rest = text;
  for (char *part; is_good && (part = strsep(&rest, "."));) {
    int64_t number = -1;
    is_good = count < 3 && quantity_parse_int(part, &number) == 0 && number >= 0 &&
              number <= PROFILE_VERSION_PATCH_MAX && isdigit((unsigned char)part[0]);
    if (is_good) {
      numbers[count++] = (int)number;
    }
  }
  if (!is_good || count < 2 || numbers[0] == 0) {
    return scan_fail(scan, value.at, "%s takes a version such as 2.21 or 2.21.5, not \"%.*s\"",
                     name, SCAN_ARGS(value));
  }
  *version = numbers[0] * 10000 + numbers[1] * 100 + numbers[2];
  return 0;
}

int scan_unquote(struct scan *scan, struct scan_span *value) {
  bool is_quoted = value->length > 0 && value->at[0] == '"';
  if (is_quoted && (value->length < 2 || value->at[value->length - 1] != '"')) {
    return scan_fail(scan, value->at, "the quote is not closed at the end of the line");
  }
  if (is_quoted) {
    value->at++;
    value->length -= 2;
  }
  const char *quote = memchr(value->at, '"', value->length);
  return quote ? scan_fail(scan, quote, "a text cannot hold a double quote") : 0;
}
