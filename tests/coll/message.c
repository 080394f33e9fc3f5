/* SPDX-License-Identifier: Apache-2.0 */
/* message: one write per message, so that the lines of many ranks stay whole. */
#include "tests/coll/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char speaker[128];

void message_set_name(const char *name) {
  snprintf(speaker, sizeof speaker, " %s:", name);
}

static void message_write_list(const char *format, va_list arguments) {
  char text[4096];
  int used = snprintf(text, sizeof text, "coll:%s ", speaker);
  int more = vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
  size_t length = (size_t)used + (more > 0 ? (size_t)more : 0);
  if (length > sizeof text - 2)
    length = sizeof text - 2;
  text[length] = '\n';
  if (write(STDERR_FILENO, text, length + 1) < 0)
    return; /* nothing left to report to */
}

void message_write(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message_write_list(format, arguments);
  va_end(arguments);
}

void message_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message_write_list(format, arguments);
  va_end(arguments);
  _exit(EXIT_BAD);
}

void *message_allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory)
    message_fail("out of memory");
  return memory;
}
