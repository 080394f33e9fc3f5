/* SPDX-License-Identifier: Apache-2.0 */
/* old_glibc: what the C library exports only since a release newer than the oldest one on which we
 * load (GLIBC in the Makefile). Static libraries that we link find it here too.
 *
 * Owns: nothing.  Threads: any.  Blocks: as the system call.  Fails: with errno. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since 2.33; before, the C library put these into each program, as this file does. x86-64 and
 * AArch64: the kernel's structure is the C library's. */
_Static_assert(sizeof(off_t) == 8 && sizeof(time_t) == 8, "struct stat is the kernel's");

int stat(const char *restrict path, struct stat *restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int lstat(const char *restrict path, struct stat *restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int fstatat(int at, const char *restrict path, struct stat *restrict status, int flags) {
  return (int)syscall(SYS_newfstatat, at, path, status, flags);
}

int fstat(int fd, struct stat *status) {
  return (int)syscall(SYS_fstat, fd, status);
}

/* Since 2.38, whose headers give strtol(), scanf() and others these names: they read C23's "0b"
 * too. All that a C file can be sent to without knowing are here, or what uses one does not link
 * where headers are new. */
#if __GLIBC_PREREQ(2, 38)
#define NUMBER_READER(type, name)                                                                  \
  type plain_##name(const char *text, char **end, int base) __asm__(#name);                        \
  type __isoc23_##name(const char *text, char **end, int base);                                    \
  type __isoc23_##name(const char *text, char **end, int base) {                                   \
    return plain_##name(text, end, base);                                                          \
  }
NUMBER_READER(long, strtol)
NUMBER_READER(unsigned long, strtoul)
NUMBER_READER(long long, strtoll)
NUMBER_READER(unsigned long long, strtoull)
NUMBER_READER(intmax_t, strtoimax)
NUMBER_READER(uintmax_t, strtoumax)

/* What reads a format, from a SOURCE: with its values one by one, and with them in a list. */
#define FORMAT_READER(name, source)                                                                \
  int plain_v##name(source, const char *format, va_list values) __asm__("v" #name);                \
  int __isoc23_v##name(source, const char *format, va_list values);                                \
  int __isoc23_##name(source, const char *format, ...);                                            \
  int __isoc23_v##name(source, const char *format, va_list values) {                               \
    return plain_v##name(from, format, values);                                                    \
  }                                                                                                \
  int __isoc23_##name(source, const char *format, ...) {                                           \
    va_list values;                                                                                \
    va_start(values, format);                                                                      \
    int count = plain_v##name(from, format, values);                                               \
    va_end(values);                                                                                \
    return count;                                                                                  \
  }
FORMAT_READER(sscanf, const char *from)
FORMAT_READER(fscanf, FILE *from)

int __isoc23_vscanf(const char *format, va_list values);
int __isoc23_scanf(const char *format, ...);

int __isoc23_vscanf(const char *format, va_list values) {
  return plain_vfscanf(stdin, format, values);
}

int __isoc23_scanf(const char *format, ...) {
  va_list values;
  va_start(values, format);
  int count = plain_vfscanf(stdin, format, values);
  va_end(values);
  return count;
}
#endif
