/* SPDX-License-Identifier: Apache-2.0 */
/* text: a buffer of fixed size that text is added to, with what JSON and Prometheus escape.
 * Owns: nothing.  Threads: the caller's.  Blocks: never.  Fails: what does not fit sets is_full and
 * is left out as a whole; callers keep room. */
#ifndef NET_PLUGIN_OBSERVE_TEXT_H
#define NET_PLUGIN_OBSERVE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
  char *bytes;
  size_t size, used; /* bytes[used] is 0 */
  bool is_full;
};

void text_init(struct text *text, char *bytes, size_t size);
static inline size_t text_room(const struct text *text) {
  return text->size - text->used;
}
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A finite number, exact where it is whole. */
void text_add_number(struct text *text, double value);
/* "value", as JSON or as a label of Prometheus wants it. Bytes beyond ASCII become '?': names come
 * from other hosts, too. */
void text_add_json_string(struct text *text, const char *value);
void text_add_label_value(struct text *text, const char *value);

#endif
