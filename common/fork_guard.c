/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of the child calls only async-signal-safe functions. */
#include "common/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/hex.h"

bool fork_guard_is_forked;

static const char *_Atomic unmapped; /* NULL: none */

/* A hexadecimal number; *at is left behind it. */
static uintptr_t read_hex(const char **at) {
  uintptr_t number = 0;
  for (int digit; (digit = hex_digit(**at)) >= 0; (*at)++) {
    number = number << 4 | (uintptr_t)digit;
  }
  return number;
}

/* A line of maps: "7f0000000000-7f0000001000 rw-s 00000000 00:06 123   /dev/infiniband/uverbs0". */
static void unmap_line(const char *line, const char *name_begins) {
  const char *name = strchr(line, '/');
  uintptr_t begin = read_hex(&line);
  line += *line == '-';
  uintptr_t end = read_hex(&line);
  if (name && begin < end && strncmp(name, name_begins, strlen(name_begins)) == 0) {
    munmap((void *)begin, end - begin); /* NOLINT: the kernel tells the address as text */
  }
}

/* The kernel continues after the last address read, so mappings may be removed while reading. */
static void unmap_in_child(const char *name_begins) {
  char text[4096]; /* a line is shorter: names are cut at PATH_MAX less than a page */
  size_t used = 0;
  ssize_t n;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && (n = read(fd, text + used, sizeof text - 1 - used)) > 0) {
    char *line = text, *end;
    used += (size_t)n;
    text[used] = '\0';
    while ((end = strchr(line, '\n'))) {
      *end = '\0';
      unmap_line(line, name_begins);
      line = end + 1;
    }
    used = line == text && used == sizeof text - 1 ? 0 : strlen(line);
    memmove(text, line, used);
  }
  if (fd >= 0) {
    close(fd);
  }
}

void fork_guard_unmap(const char *name_begins) {
  atomic_store(&unmapped, name_begins);
}

static void in_child(void) {
  const char *name_begins = atomic_load(&unmapped);
  descriptor_close_in_child();
  if (name_begins) {
    unmap_in_child(name_begins);
  }
  fork_guard_is_forked = true;
}

static void install(void) {
  pthread_atfork(descriptor_before_fork, descriptor_after_fork, in_child);
}

void fork_guard_install(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
}

bool fork_guard_refuses(void) {
  static bool is_told;
  static const char text[] = "stratus: this process was forked from one that uses NCCL, and cannot "
                             "use its communicators; use spawn or exec instead of fork\n";
  if (fork_guard_is_forked && !is_told) {
    is_told = true;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written; /* nothing can be done about it */
  }
  return fork_guard_is_forked;
}
