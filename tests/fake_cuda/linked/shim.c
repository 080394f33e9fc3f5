/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols that the NCCL objects from newer Debian releases expect from a newer C or C++ library.
 * They are linked into libnccl.so.2 with hidden visibility, so nothing else can see them. */
#include <features.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* glibc 2.38: C23 number parsing. The only difference is that base 0 accepts "0b..." too. */
#if !__GLIBC_PREREQ(2, 38)
long __isoc23_strtol(const char *text, char **end, int base) {
  return strtol(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base) {
  return strtoul(text, end, base);
}

long long __isoc23_strtoll(const char *text, char **end, int base) {
  return strtoll(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base) {
  return strtoull(text, end, base);
}

int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsscanf(text, format, args);
  va_end(args);
  return n;
}

int __isoc23_fscanf(FILE *file, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vfscanf(file, format, args);
  va_end(args);
  return n;
}
#endif
