/* SPDX-License-Identifier: Apache-2.0 */
/* See open_files.h. */
#include "common/open_files.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "common/limits.h"
#include "common/log.h"

uint64_t open_files_limit(void) {
  struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
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
    snprintf(text, OPEN_FILES_TEXT,
             "no descriptor is left: this process has %" PRIu64
             ". Raise the limit: ulimit -n (systemd: LimitNOFILE=, docker: --ulimit nofile=)",
             open_files_limit());
  } else if (error == -ENFILE) {
    snprintf(text, OPEN_FILES_TEXT,
             "the host has no file left to open; raise the limit of all its processes: "
             "sysctl fs.file-max");
  } else {
    snprintf(text, OPEN_FILES_TEXT, "%s", strerror(-error));
  }
  return text;
}
