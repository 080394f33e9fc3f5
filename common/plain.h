/* SPDX-License-Identifier: Apache-2.0 */
/* plain: texts from users, other processes and hosts, made safe for a terminal and a log.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_PLAIN_H
#define COMMON_PLAIN_H

/* Replaces everything but visible ASCII and the blank by '?', in place. Returns `text`. */
static inline char *plain_text(char *text) {
  for (char *c = text; *c; c++) {
    *c = *c >= ' ' && *c <= '~' ? *c : '?';
  }
  return text;
}

/* A user's value in double quotes, as in "stratus\r", with escapes as those of C. A long one ends
 * in "...". Returns `text`. */
enum { QUOTE_MAX = 512 }; /* bytes of text: a line or two of a terminal */
const char *quote(const char *value, char text[QUOTE_MAX]);

#endif
