/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics on stderr, controlled by FAKE_CUDA_LOG. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fake_cuda/runtime/log.h"

int log_level;

/* Writes one line with a single write so that lines of several processes do not mix. */
void log_print(const char *format, ...) {
  char line[600];
  int used = snprintf(line, sizeof line, "[fake_cuda %d] ", (int)getpid());
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line + used, sizeof line - used - 1, format, args);
  va_end(args);
  used += n;
  if (used > (int)sizeof line - 2)
    used = sizeof line - 2;
  line[used++] = '\n';
  ssize_t ignored = write(STDERR_FILENO, line, used);
  (void)ignored;
}

__attribute__((constructor)) static void log_init(void) {
  const char *level = getenv("FAKE_CUDA_LOG");
  if (level)
    log_level = atoi(level);
}
