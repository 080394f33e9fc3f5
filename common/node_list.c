/* SPDX-License-Identifier: Apache-2.0 */
/* See node_list.h. An entry is read from left to right: text, a bracket, and the rest, which is an
 * entry again. */
#include "common/node_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many digits fit into an unsigned. */
enum { DIGITS_MAX = 9 };

struct range {
  unsigned low, count;
  int digits; /* of the smallest number, its zeros included */
};

size_t node_list_entry(const char *list) {
  bool is_inside = false;
  size_t length = 0;
  for (; list[length] && (is_inside || list[length] != ','); length++) {
    is_inside = list[length] == '[' || (is_inside && list[length] != ']');
  }
  return length;
}

/* A number of at most DIGITS_MAX digits. Returns what comes after it, or NULL. */
static const char *read_number(const char *text, unsigned *number, int *digits) {
  size_t length = strspn(text, "0123456789");
  if (length == 0 || length > DIGITS_MAX) {
    return NULL;
  }
  *number = (unsigned)strtoul(text, NULL, 10);
  *digits = (int)length;
  return text + length;
}

/* "7" or "01-03". Returns what comes after it, or NULL. */
static const char *read_range(const char *text, struct range *range) {
  unsigned high;
  int ignored;
  text = read_number(text, &range->low, &range->digits);
  range->count = 1;
  if (!text || *text != '-') {
    return text;
  }
  text = read_number(text + 1, &high, &ignored);
  if (!text || high < range->low) {
    return NULL;
  }
  range->count = high - range->low + 1;
  return text;
}

/* Reads the bracket that begins at `text`. `place`, if it is below the count, is that of the number
 * to be printed. Returns what comes after the bracket, or NULL. */
static const char *read_bracket(const char *text, unsigned place, unsigned *count,
                                char number[16]) {
  *count = 0;
  do {
    struct range range;
    text = read_range(text + 1, &range);
    if (!text || (*text != ',' && *text != ']') || range.count > NODE_LIST_MAX) {
      return NULL;
    }
    if (place >= *count && place - *count < range.count) {
      snprintf(number, 16, "%0*u", range.digits, range.low + (place - *count));
    }
    *count += range.count;
  } while (*text == ',' && *count <= NODE_LIST_MAX);
  return *text == ']' ? text + 1 : NULL;
}

int node_list_count(const char *entry, unsigned *count) {
  char number[16];
  *count = 1;
  while (*(entry += strcspn(entry, "[],"))) {
    unsigned of_bracket;
    entry = *entry == '[' ? read_bracket(entry, 0, &of_bracket, number) : NULL;
    if (!entry) {
      return -EINVAL;
    }
    if (of_bracket > NODE_LIST_MAX / *count) {
      return -ERANGE;
    }
    *count *= of_bracket;
  }
  return 0;
}

int node_list_name(const char *entry, unsigned place, char *name, size_t size) {
  unsigned count;
  size_t used = 0;
  int error = node_list_count(entry, &count);
  if (error != 0 || place >= count) {
    return error ? error : -EINVAL;
  }
  for (const char *next; *entry; entry = next) {
    size_t length = strcspn(entry, "[");
    char number[16] = "";
    next = entry + length;
    if (*next == '[') {
      unsigned of_bracket;
      read_bracket(next, 0, &of_bracket, number);
      count /= of_bracket;
      next = read_bracket(next, place / count, &of_bracket, number);
      place %= count;
    }
    if (length + strlen(number) >= size - used) {
      return -ENAMETOOLONG;
    }
    used += (size_t)snprintf(name + used, size - used, "%.*s%s", (int)length, entry, number);
  }
  return used > 0 ? 0 : -EINVAL;
}
