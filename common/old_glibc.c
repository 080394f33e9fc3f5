/* SPDX-License-Identifier: Apache-2.0 */
/* What the C library exports only since glibc 2.33, for what is linked to load on older releases
 * (GLIBC in the Makefile). Older releases put these functions into each program, as this file does;
 * static libraries that we link find them here too. Owns: nothing.  Threads: any.  Blocks: as the
 * system call.  Fails: with errno. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* x86-64 and AArch64: the kernel's structure is the C library's. */
_Static_assert(sizeof(off_t) == 8 && sizeof(time_t) == 8, "struct stat is the kernel's");

int stat(const char *restrict path, struct stat *restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int lstat(const char *restrict path, struct stat *restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *status) {
  return (int)syscall(SYS_fstat, fd, status);
}
