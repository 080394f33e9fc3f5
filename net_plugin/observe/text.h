/* SPDX-License-Identifier: Apache-2.0 */
/* text: a text buffer of fixed size, with escaping for JSON.
 * Owns: nothing.  Threads: the caller's.  Blocks: never.  Fails: an addition that does not fit is
 * left out and sets is_full. */
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
/* A number; whole numbers exactly, 0 if not finite. */
void text_add_number(struct text *text, double value);
/* "value", quoted and escaped. Bytes beyond ASCII become '?', as names may come from other hosts.
 */
void text_add_json_string(struct text *text, const char *value);

#endif
