/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_source.h. */
#include "net_plugin/tools/stats_source.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net_plugin/observe/stats_path.h"

/* Longer than STATS_CLIENT_NS. */
#define TIMEOUT_S 6
/* Sixteen thousand flows are some ten million bytes. */
#define ANSWER_MAX_BYTES (256u << 20)

static int add(struct stats_sources *sources, const char *directory, const char *name) {
  struct stats_source *larger =
      reallocarray(sources->list, sources->count + 1, sizeof *sources->list);
  if (!larger) {
    return -ENOMEM;
  }
  sources->list = larger;
  struct stats_source *added = &larger[sources->count++];
  added->pid = stats_path_pid(name);
  snprintf(added->path, sizeof added->path, "%.255s/%.63s", directory, name);
  return 0;
}

static int add_directory(const char *directory, struct stats_sources *sources) {
  stats_path_sweep(directory);
  DIR *opened = opendir(directory);
  struct dirent *entry;
  int error = 0;
  while (opened && !error && (entry = readdir(opened))) {
    if (stats_path_pid(entry->d_name)) {
      error = add(sources, directory, entry->d_name);
    }
  }
  if (opened) {
    closedir(opened);
  }
  return error;
}

/* For other users: only a directory with mode 0700, no symbolic link. */
static bool is_private(const char *directory) {
  struct stat found;
  return lstat(directory, &found) == 0 && S_ISDIR(found.st_mode) && (found.st_mode & 0777) == 0700;
}

static int add_other_users(struct stats_sources *sources) {
  glob_t found;
  int error = 0;
  if (glob("/tmp/stratus-*", 0, NULL, &found) == GLOB_NOSPACE ||
      glob("/run/user/*/stratus", GLOB_APPEND, NULL, &found) == GLOB_NOSPACE) {
    error = -ENOMEM;
  }
  for (size_t i = 0; i < found.gl_pathc && !error; i++) {
    if (is_private(found.gl_pathv[i])) {
      error = add_directory(found.gl_pathv[i], sources);
    }
  }
  globfree(&found);
  return error;
}

static int stats_source_compare(const void *a, const void *b) {
  const struct stats_source *x = a, *y = b;
  int order = (x->pid > y->pid) - (x->pid < y->pid);
  return order ? order : strcmp(x->path, y->path);
}

/* The same directory may have been read twice. */
static void sort_and_unite(struct stats_sources *sources) {
  size_t kept = 0;
  if (sources->count) {
    qsort(sources->list, sources->count, sizeof *sources->list, stats_source_compare);
  }
  for (size_t i = 0; i < sources->count; i++) {
    if (kept == 0 || stats_source_compare(&sources->list[kept - 1], &sources->list[i]) != 0) {
      sources->list[kept++] = sources->list[i];
    }
  }
  sources->count = kept;
}

int stats_sources_find(bool has_other_users, struct stats_sources *sources) {
  char directories[STATS_DIRECTORIES_MAX][STATS_PATH_MAX];
  unsigned count = stats_path_directories(directories);
  int error = 0;
  *sources = (struct stats_sources){ 0 };
  for (unsigned i = 0; i < count && !error; i++) {
    if (stats_path_check(directories[i], false) == 0) {
      error = add_directory(directories[i], sources);
    }
  }
  if (!error && has_other_users) {
    error = add_other_users(sources);
  }
  sort_and_unite(sources);
  return error;
}

void stats_sources_free(struct stats_sources *sources) {
  free(sources->list);
  *sources = (struct stats_sources){ 0 };
}

static int reach(const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct timeval timeout = { .tv_sec = TIMEOUT_S };
  if (strlen(path) >= sizeof address.sun_path) {
    return -ENAMETOOLONG;
  }
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -errno;
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    int error = errno == EAGAIN ? -ETIMEDOUT : -errno;
    close(fd);
    return error;
  }
  return fd;
}

/* Up to the end. */
static int read_answer(int fd, char **answer) {
  size_t used = 0, room = 0;
  ssize_t n = 0;
  *answer = NULL;
  do {
    used += (size_t)n;
    if (used + 1 >= room) {
      room = room ? room * 2 : 64u << 10;
      char *larger = room <= ANSWER_MAX_BYTES ? realloc(*answer, room) : NULL;
      if (!larger) {
        return -ENOMEM;
      }
      *answer = larger;
    }
    n = recv(fd, *answer + used, room - used - 1, 0);
  } while (n > 0);
  (*answer)[used] = '\0';
  if (n < 0) {
    return errno == EAGAIN ? -ETIMEDOUT : -errno;
  }
  return used ? 0 : -ENODATA;
}

int stats_source_ask(const struct stats_source *source, const char *question, char **answer) {
  char line[32];
  int length = snprintf(line, sizeof line, "%s\n", question), fd = reach(source->path);
  *answer = NULL;
  if (fd < 0) {
    return fd;
  }
  int error = send(fd, line, (size_t)length, MSG_NOSIGNAL) == length ? 0 : -EPIPE;
  error = error ? error : read_answer(fd, answer);
  close(fd);
  if (error) {
    free(*answer);
    *answer = NULL;
  }
  return error;
}
