/* SPDX-License-Identifier: Apache-2.0 */
/* stats_file: the socket of this process's statistics, whose whole name only the plugin knows.
 * Owns: nothing.  Threads: any.  Blocks: on the file system.  Fails: as stated. */
#ifndef TESTS_LIB_STATS_FILE_H
#define TESTS_LIB_STATS_FILE_H

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { STATS_FILE_MAX = 108 }; /* as in struct sockaddr_un */

/* Whether there is one in the directory, and where; else the path is of no file. */
static inline bool stats_file_find(const char *directory, char path[STATS_FILE_MAX]) {
  char pattern[128];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%.100s/%d-*.sock", directory, (int)getpid());
  bool is_there = glob(pattern, 0, NULL, &found) == 0;
  snprintf(path, STATS_FILE_MAX, "%.107s", is_there ? found.gl_pathv[0] : pattern);
  globfree(&found);
  return is_there;
}

#endif
