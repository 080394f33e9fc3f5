/* SPDX-License-Identifier: Apache-2.0 */
/* text: a text that grows, with escaping for JSON. Starts zeroed.
 * Owns: its bytes, until text_free.  Threads: the caller's.  Blocks: never.  Fails: without memory
 * an addition is left out and sets is_full. */
#ifndef NET_PLUGIN_OBSERVE_TEXT_H
#define NET_PLUGIN_OBSERVE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
  char *bytes;       /* NULL: nothing was added */
  size_t size, used; /* bytes[used] is 0 */
  bool is_full;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number; whole numbers exactly, 0 if not finite. */
void text_add_number(struct text *text, double value);
/* "value", quoted and escaped. Bytes beyond ASCII become '?', as names may come from other hosts.
 */
void text_add_json_string(struct text *text, const char *value);
void text_free(struct text *text);

#endif
