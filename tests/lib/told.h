/* SPDX-License-Identifier: Apache-2.0 */
/* told: what the checks of stratus doctor tell, in the place of doctor's own; for one file of a
 * test. Owns: the text.  Threads: one.  Blocks: never.  Fails: what does not fit is cut. */
#ifndef TESTS_LIB_TOLD_H
#define TESTS_LIB_TOLD_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net_plugin/tools/doctor_check.h"

/* Lines such as "hint: eth0 ...", and how many there are of a kind. */
static char told[8192];
static int told_counts[DOCTOR_BAD + 1];

static inline void told_clear(void) {
  told[0] = '\0';
  memset(told_counts, 0, sizeof told_counts);
}

void doctor_tell(enum doctor_finding finding, const char *format, ...) {
  static const char *const words[] = { "good: ", "hint: ", "bad: " };
  char text[DOCTOR_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t length = strlen(told);
  snprintf(told + length, sizeof told - length, "%s%s\n", words[finding], text);
  told_counts[finding]++;
}

#endif
