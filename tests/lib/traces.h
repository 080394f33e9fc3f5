/* SPDX-License-Identifier: Apache-2.0 */
/* traces: what of this process others may have left behind.
 * Owns: nothing.  Threads: any.  Blocks: traces_left, up to 2 s.
 * Fails: ends the process where there is no /proc. */
#ifndef TESTS_LIB_TRACES_H
#define TESTS_LIB_TRACES_H

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

struct traces {
  int threads, descriptors;
};

static inline int traces_entries(const char *path) {
  int found = 0;
  DIR *directory = opendir(path);
  if (!directory) {
    abort();
  }
  for (struct dirent *entry; (entry = readdir(directory));) {
    found += entry->d_name[0] != '.';
  }
  closedir(directory);
  return found;
}

static inline struct traces traces_now(void) {
  return (struct traces){ traces_entries("/proc/self/task"), traces_entries("/proc/self/fd") };
}

/* A thread that was joined leaves /proc a little later. */
static inline struct traces traces_left(struct traces before) {
  struct traces now = traces_now();
  for (int i = 0; i < 20000 && now.threads > before.threads; i++) {
    usleep(100);
    now = traces_now();
  }
  return now;
}

#endif
