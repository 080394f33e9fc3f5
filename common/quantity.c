/* SPDX-License-Identifier: Apache-2.0 */
/* One number parser for parameters, profiles and command lines. */
#include "common/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
  const char *suffix;
  uint64_t factor;
};

/* Largest first, so that formatting finds the largest unit that divides the value. */
static const struct unit size_units[] = {
  { "T", UINT64_C(1) << 40 },
  { "G", UINT64_C(1) << 30 },
  { "M", UINT64_C(1) << 20 },
  { "K", UINT64_C(1) << 10 },
  { "", 1 },
};

static const struct unit duration_units[] = {
  { "h", UINT64_C(3600000000000) }, { "m", UINT64_C(60000000000) }, { "s", UINT64_C(1000000000) },
  { "ms", UINT64_C(1000000) },      { "us", UINT64_C(1000) },       { "ns", 1 },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Reads digits; `*end` is the first character after them. */
static int parse_digits(const char *text, uint64_t *value, const char **end) {
  if (!isdigit((unsigned char)*text)) {
    return -EINVAL;
  }
  uint64_t sum = 0;
  for (; isdigit((unsigned char)*text); text++) {
    if (__builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
        __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum)) {
      return -ERANGE;
    }
  }
  *value = sum;
  *end = text;
  return 0;
}

int quantity_parse_int(const char *text, int64_t *value) {
  bool is_negative = *text == '-';
  uint64_t magnitude;
  const char *end;
  int result = parse_digits(text + (*text == '-' || *text == '+'), &magnitude, &end);
  if (result < 0) {
    return result;
  }
  if (*end != '\0') {
    return -EINVAL;
  }
  if (magnitude > INT64_MAX) {
    return -ERANGE;
  }
  *value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
  return 0;
}

/* A number and one of the units. `is_size`: in either case, with B or iB behind it. */
static int parse_units(const struct unit *units, size_t count, bool is_size, const char *text,
                       const char *usual, uint64_t *value) {
  uint64_t number;
  const char *end;
  int result = parse_digits(text, &number, &end);
  end = result == 0 && *end == '\0' ? usual : end;
  for (size_t i = 0; result == 0 && i < count; i++) {
    size_t length = strlen(units[i].suffix);
    const char *rest = end + strnlen(end, length);
    bool is_end = *rest == '\0' || (is_size && strcasecmp(rest, "B") == 0) ||
                  (is_size && length > 0 && strcasecmp(rest, "iB") == 0);
    if (is_end && (is_size ? strncasecmp : strncmp)(end, units[i].suffix, length) == 0) {
      if (__builtin_mul_overflow(number, units[i].factor, &number)) {
        return -ERANGE;
      }
      *value = number;
      return 0;
    }
  }
  return result < 0 ? result : -EINVAL;
}

int quantity_parse_size(const char *text, uint64_t *bytes) {
  return parse_units(size_units, COUNT_OF(size_units), true, text, "", bytes);
}

static int parse_duration(const char *text, uint64_t *ns) {
  return parse_units(duration_units, COUNT_OF(duration_units), false, text, "s", ns);
}

int quantity_find_word(const char *words, const char *text) {
  size_t length = strlen(text);
  for (int place = 0;; place++) {
    size_t word_length = strcspn(words, "|");
    if (word_length == length && length > 0 && strncasecmp(words, text, length) == 0) {
      return place;
    }
    if (words[word_length] == '\0') {
      return -EINVAL;
    }
    words += word_length + 1;
  }
}

bool quantity_next_word(const char **list, char word[QUANTITY_WORD_MAX]) {
  if (!*list) {
    return false;
  }
  size_t length = strcspn(*list, ",");
  snprintf(word, QUANTITY_WORD_MAX, "%.*s", (int)length, *list);
  *list = (*list)[length] ? *list + length + 1 : NULL;
  return true;
}

/* ---- the distance: by a table of those between prefixes, of which three rows are kept ---- */

static int min3(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}

static bool is_same(char a, char b, bool ignores_case) {
  return a == b || (ignores_case && toupper((unsigned char)a) == toupper((unsigned char)b));
}

int name_distance(const char *name, size_t length, const char *other, bool is_part) {
  int rows[3][NAME_DISTANCE_MAX + 1]; /* of the letter, the one before, the one before that */
  size_t other_length = strnlen(other, NAME_DISTANCE_MAX);
  length = length < NAME_DISTANCE_MAX ? length : NAME_DISTANCE_MAX;
  for (size_t j = 0; j <= other_length; j++) {
    rows[0][j] = (int)j;
  }
  int best = rows[0][other_length];
  for (size_t i = 1; i <= length; i++) {
    int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
    row[0] = is_part ? 0 : (int)i;
    for (size_t j = 1; j <= other_length; j++) {
      bool is_kept = is_same(name[i - 1], other[j - 1], is_part);
      row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + !is_kept);
      bool is_exchanged = i > 1 && j > 1 && is_same(name[i - 1], other[j - 2], is_part) &&
                          is_same(name[i - 2], other[j - 1], is_part);
      if (is_exchanged && above2[j - 2] < row[j]) {
        row[j] = above2[j - 2] + 1;
      }
    }
    best = row[other_length] < best ? row[other_length] : best;
  }
  return is_part ? best : rows[length % 3][other_length];
}

/* ---- back to text ---- */

static const char *format_units(const struct unit *units, size_t count, uint64_t value,
                                const char *zero, char text[QUANTITY_TEXT_MAX]) {
  if (value == 0) {
    snprintf(text, QUANTITY_TEXT_MAX, "%s", zero);
    return text;
  }
  size_t i = 0;
  while (i < count - 1 && value % units[i].factor != 0) {
    i++;
  }
  snprintf(text, QUANTITY_TEXT_MAX, "%" PRIu64 "%s", value / units[i].factor, units[i].suffix);
  return text;
}

const char *quantity_format_size(uint64_t bytes, char text[QUANTITY_TEXT_MAX]) {
  return format_units(size_units, COUNT_OF(size_units), bytes, "0", text);
}

int quantity_parse(enum quantity_type type, const char *words, const char *text, int64_t *number) {
  int flag = quantity_find_word("0|1|no|yes|off|on|false|true", text); /* odd: on */
  int result = -EINVAL;
  uint64_t magnitude = 0;
  switch (type) {
  case QUANTITY_BOOL:
    result = flag;
    magnitude = (uint64_t)flag % 2;
    break;
  case QUANTITY_INT:
    return quantity_parse_int(text, number);
  case QUANTITY_SIZE:
    result = quantity_parse_size(text, &magnitude);
    break;
  case QUANTITY_DURATION:
    result = parse_duration(text, &magnitude);
    break;
  case QUANTITY_ENUM:
    result = quantity_find_word(words, text);
    result = result < 0 && flag >= 0 ? quantity_find_word(words, flag % 2 ? "on" : "off") : result;
    magnitude = (uint64_t)result;
    break;
  default:
    break;
  }
  if (result >= 0 && magnitude > INT64_MAX) {
    return -ERANGE;
  }
  if (result >= 0) {
    *number = (int64_t)magnitude;
  }
  return result < 0 ? result : 0;
}

const char *quantity_format(enum quantity_type type, const char *words, int64_t number,
                            char text[QUANTITY_TEXT_MAX]) {
  switch (type) {
  case QUANTITY_SIZE:
    return quantity_format_size((uint64_t)number, text);
  case QUANTITY_DURATION:
    return format_units(duration_units, COUNT_OF(duration_units), (uint64_t)number, "0s", text);
  case QUANTITY_ENUM:
    for (; number > 0; number--) {
      words += strcspn(words, "|") + 1;
    }
    snprintf(text, QUANTITY_TEXT_MAX, "%.*s", (int)strcspn(words, "|"), words);
    return text;
  default:
    snprintf(text, QUANTITY_TEXT_MAX, "%" PRId64, number);
    return text;
  }
}
