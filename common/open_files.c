/* SPDX-License-Identifier: Apache-2.0 */
/* See open_files.h. */
#include "common/open_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/limits.h"
#include "common/log.h"

static uint64_t count_entries(uint64_t limit) {
  DIR *directory = opendir("/proc/self/fd");
  if (!directory) {
    return errno == EMFILE ? limit : limit / 2;
  }
  uint64_t count = 0;
  while (readdir(directory)) {
    count++;
  }
  closedir(directory);
  return count > 3 ? count - 3 : 0; /* ".", ".." and the directory itself */
}

uint64_t open_files_limit(void) {
  struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

struct open_files {
  uint64_t limit, used; /* used is never more than limit */
};

static struct open_files open_files_count(void) {
  struct stat status;
  struct open_files files = { .limit = open_files_limit() };
  /* Since Linux 6.2 the size of the directory is the number of descriptors; before it is 0. This
   * takes no descriptor. */
  bool is_counted = stat("/proc/self/fd", &status) == 0 && status.st_size > 0;
  files.used = is_counted ? (uint64_t)status.st_size : count_entries(files.limit);
  if (files.used > files.limit) {
    files.used = files.limit; /* the limit was lowered later */
  }
  return files;
}

/* Programs that use select() break on descriptors from FD_SETSIZE (1024) on. Raising the soft limit
 * renumbers nothing: what the application opened before keeps its number, and the kernel gives
 * every new descriptor the lowest free one, so a process that stays below 1024 descriptors sees no
 * higher number than without. One that needs more would get EMFILE without this, which ends the
 * job: NCCL's own sockets count, too, and NCCL itself raises the limit in the process that has the
 * root of its bootstrap (ncclOsSetFilesLimit in src/os/linux.cc at v2.30.7). */
static void raise_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return;
  }
  rlim_t before = limit.rlim_cur;
  rlim_t target = limit.rlim_max < OPEN_FILES_RAISED_MOST ? limit.rlim_max : OPEN_FILES_RAISED_MOST;
  if (before >= target) {
    return;
  }
  limit.rlim_cur = target;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
    LOG_INFO("raised the limit of open descriptors (ulimit -n) from %" PRIu64 " to %" PRIu64
             " for this process",
             (uint64_t)before, (uint64_t)target);
  } else {
    LOG_INFO("the limit of open descriptors (ulimit -n) stays at %" PRIu64 ": %s", (uint64_t)before,
             strerror(errno));
  }
}

void open_files_raise(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, raise_limit);
}

bool open_files_are_short(int error) {
  return error == -EMFILE || error == -ENFILE;
}

const char *open_files_why(int error, char text[OPEN_FILES_TEXT]) {
  if (error == -EMFILE) {
    struct open_files files = open_files_count();
    snprintf(text, OPEN_FILES_TEXT,
             "no descriptor is left: this process uses %" PRIu64 " of %" PRIu64
             ". Raise the limit: ulimit -n (systemd: LimitNOFILE=, docker: --ulimit nofile=)",
             files.used, files.limit);
  } else if (error == -ENFILE) {
    snprintf(text, OPEN_FILES_TEXT,
             "the host has no file left to open; raise the limit of all its processes: "
             "sysctl fs.file-max");
  } else {
    snprintf(text, OPEN_FILES_TEXT, "%s", strerror(-error));
  }
  return text;
}
