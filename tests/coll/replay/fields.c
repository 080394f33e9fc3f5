/* SPDX-License-Identifier: Apache-2.0 */
/* fields: keys are checked before values, so that a typing error is not taken for a missing key. */
#include "tests/coll/replay/fields.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 64 }; /* characters of a text that a message repeats */

/* ---- messages ---- */

static size_t add_place(const struct place *place, char *text, size_t size) {
  if (!place)
    return 0;
  size_t used = add_place(place->parent, text, size);
  if (used >= size)
    return used;
  int length = place->key ? snprintf(text + used, size - used, "%s%.*s", used ? "." : "", SHOWN_MAX,
                                     place->key)
                          : snprintf(text + used, size - used, "[%zu]", place->index);
  return used + (size_t)length;
}

/* Texts of the file go to a terminal. */
static void remove_controls(char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f)
      *text = '?';
  }
}

int fields_fail(struct fields_reader *reader, const struct place *place, const char *format, ...) {
  char where[512] = "", what[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  add_place(place, where, sizeof where);
  snprintf(reader->error, reader->error_size, "%.300s: %s%s%s", reader->name, where,
           *where ? ": " : "", what);
  remove_controls(reader->error);
  return -EINVAL;
}

static const char *type_name(const json_t *value) {
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    return "an object";
  case JSON_ARRAY:
    return "a list";
  case JSON_STRING:
    return "a text";
  case JSON_INTEGER:
  case JSON_REAL:
    return "a number";
  case JSON_NULL:
    return "null";
  default:
    return "true or false";
  }
}

int fields_want(struct fields_reader *reader, const struct place *place, const json_t *value,
                json_type type, const char *expected) {
  if (json_typeof(value) == type)
    return 0;
  return fields_fail(reader, place, "%s, expected %s", type_name(value), expected);
}

int fields_want_list(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field) {
  int result = fields_want(reader, place, value, JSON_ARRAY, "a list");
  size_t length = json_array_size(value);
  if (result == 0 && (length < (size_t)field->low || length > (size_t)field->high))
    return fields_fail(reader, place, "%zu entries, expected %.0f to %.0f", length, field->low,
                       field->high);
  return result;
}

/* ---- objects ---- */

static void list_keys(const struct field *fields, size_t count, unsigned kind, char *text,
                      size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < count && used < size; i++) {
    if (fields[i].allowed & kind)
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", fields[i].key);
  }
}

static int check_key(struct fields_reader *reader, const struct place *place,
                     const struct field *fields, size_t count, unsigned kind,
                     const char *kind_text) {
  size_t i = 0;
  while (i < count && strcmp(fields[i].key, place->key))
    i++;
  if (i < count && fields[i].allowed & kind)
    return 0;
  char keys[400];
  list_keys(fields, count, kind, keys, sizeof keys);
  return i < count ? fields_fail(reader, place, "%s has no such key, only %s", kind_text, keys)
                   : fields_fail(reader, place, "unknown key, expected one of %s", keys);
}

int fields_read_object(struct fields_reader *reader, const struct place *place,
                       const json_t *object, const struct field *fields, size_t count,
                       unsigned kind, const char *kind_text, void *to) {
  int result = fields_want(reader, place, object, JSON_OBJECT, "an object");
  if (result < 0)
    return result;
  /* jansson's functions to iterate take no const. */
  json_t *iterated = (json_t *)(uintptr_t)object;
  for (void *at = json_object_iter(iterated); at; at = json_object_iter_next(iterated, at)) {
    const struct place key = { place, json_object_iter_key(at), 0 };
    result = check_key(reader, &key, fields, count, kind, kind_text);
    if (result < 0)
      return result;
  }
  for (size_t i = 0; i < count; i++) {
    const struct field *field = &fields[i];
    const struct place key = { place, field->key, 0 };
    const json_t *value = json_object_get(object, field->key);
    if (!value && field->required & kind)
      return fields_fail(reader, &key, "missing");
    if (value && field->read) {
      result = field->read(reader, &key, value, field, (char *)to + field->offset);
      if (result < 0)
        return result;
    }
  }
  return 0;
}

/* ---- values ---- */

/* "1 to 64", or the only number that will do. */
enum { RANGE_TEXT_MAX = 64 };
static const char *range_text(const struct field *field, char text[RANGE_TEXT_MAX]) {
  int used = snprintf(text, RANGE_TEXT_MAX, "%.0f", field->low);
  if (field->high > field->low)
    snprintf(text + used, (size_t)(RANGE_TEXT_MAX - used), " to %.0f", field->high);
  return text;
}

static int want_whole(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field) {
  char range[RANGE_TEXT_MAX];
  if (!json_is_integer(value))
    return fields_fail(reader, place, "%s, expected a whole number, %s",
                       json_is_real(value) ? "a fraction" : type_name(value),
                       range_text(field, range));
  json_int_t number = json_integer_value(value);
  if (number < (json_int_t)field->low || number > (json_int_t)field->high)
    return fields_fail(reader, place, "%lld, expected %s", (long long)number,
                       range_text(field, range));
  return 0;
}

int fields_read_int(struct fields_reader *reader, const struct place *place, const json_t *value,
                    const struct field *field, void *to) {
  int result = want_whole(reader, place, value, field);
  if (result == 0)
    *(int *)to = (int)json_integer_value(value);
  return result;
}

int fields_read_count(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  int result = want_whole(reader, place, value, field);
  if (result == 0)
    *(uint64_t *)to = (uint64_t)json_integer_value(value);
  return result;
}

int fields_read_number(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, void *to) {
  if (!json_is_number(value))
    return fields_fail(reader, place, "%s, expected a number from %g to %g", type_name(value),
                       field->low, field->high);
  double number = json_number_value(value);
  if (!(number >= field->low && number <= field->high))
    return fields_fail(reader, place, "%g, expected %g to %g", number, field->low, field->high);
  *(double *)to = number;
  return 0;
}

int fields_read_text(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, void *to) {
  int result = fields_want(reader, place, value, JSON_STRING, "a text");
  if (result < 0)
    return result;
  size_t length = json_string_length(value);
  if (length < (size_t)field->low || length > (size_t)field->high)
    return fields_fail(reader, place, "%zu characters long, expected %.0f to %.0f", length,
                       field->low, field->high);
  char *copy = strdup(json_string_value(value));
  if (!copy) {
    fields_fail(reader, place, "out of memory");
    return -ENOMEM;
  }
  *(char **)to = copy;
  return 0;
}

int fields_read_name(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, void *to) {
  static const char accepted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789._+-";
  const char *text = json_string_value(value);
  if (text && text[strspn(text, accepted)])
    return fields_fail(reader, place, "\"%.*s\", expected letters, digits and . _ + - only",
                       SHOWN_MAX, text);
  return fields_read_text(reader, place, value, field, to);
}

/* Words are separated by ", " and, the last one, " or ". */
static int find_word(const char *words, const char *text) {
  size_t length = strlen(text);
  for (int place = 0;; place++) {
    size_t word_length = strcspn(words, ", ");
    if (word_length == length && !memcmp(words, text, length))
      return place;
    words += word_length;
    if (!*words)
      return -1;
    words += *words == ',' ? strlen(", ") : strlen(" or ");
  }
}

int fields_read_word(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const char *words, int (*find)(const char *word), void *to) {
  int result = fields_want(reader, place, value, JSON_STRING, words);
  if (result < 0)
    return result;
  const char *text = json_string_value(value);
  int found = find_word(words, text);
  if (found < 0 && find)
    found = find(text);
  if (found < 0)
    return fields_fail(reader, place, "\"%.64s\", expected %s", text, words);
  *(int *)to = found;
  return 0;
}
