/* SPDX-License-Identifier: Apache-2.0 */
/* The first failure of a process. */
#include "net_plugin/tools/perf/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/cli.h"

static char first[512];

int failure(const char *format, ...) {
  char text[sizeof first];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!first[0]) {
    snprintf(first, sizeof first, "%s", text);
  }
  return cli_fail("%s", text);
}

const char *failure_text(void) {
  return first[0] ? first : "for an unknown reason";
}
