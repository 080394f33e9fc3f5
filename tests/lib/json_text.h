/* SPDX-License-Identifier: Apache-2.0 */
/* json_text: JSON in C, with ' for ".
 * Owns: its texts, of which the last four stay.  Threads: one.  Blocks: never.  Fails: cannot;
 * what is too long is cut. */
#ifndef TESTS_LIB_JSON_TEXT_H
#define TESTS_LIB_JSON_TEXT_H

#include <stdio.h>

static inline const char *json_text(const char *text) {
  static char rooms[4][4096];
  static unsigned next;
  char *room = rooms[next++ % 4];
  snprintf(room, sizeof rooms[0], "%s", text);
  for (char *c = room; *c; c++) {
    *c = *c == '\'' ? '"' : *c;
  }
  return room;
}

#endif
