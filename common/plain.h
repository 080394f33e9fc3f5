/* SPDX-License-Identifier: Apache-2.0 */
/* plain: texts from other processes and hosts, made safe for a terminal and a log.
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

#endif
