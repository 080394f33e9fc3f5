/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_source.h. */
#include "net_plugin/tools/stats_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/plain.h"
#include "net_plugin/observe/stats_path.h"
#include "net_plugin/tools/limits.h"

enum { FIRST_BYTES = 64 << 10 };

/* ---- find ---- */

/* A directory that is private to its owner, no symbolic link; or -1. */
static int open_private(const char *directory, int flags, struct stat *found) {
  int fd = open(directory, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && (fstat(fd, found) != 0 || (found->st_mode & 0777) != 0700)) {
    close(fd);
    fd = -1;
  }
  return fd;
}

static int add_directory(const char *directory, struct stats_sources *sources) {
  struct stat found;
  int fd = open_private(directory, O_RDONLY, &found), error = 0;
  DIR *opened = fd >= 0 ? fdopendir(fd) : NULL;
  struct dirent *entry;
  if (!opened) {
    descriptor_close(fd);
    return 0;
  }
  while (!error && sources->count < STATS_SOURCES_MAX && (entry = readdir(opened))) {
    struct stats_source *larger =
        reallocarray(sources->list, sources->count + 1, sizeof *sources->list);
    error = larger ? 0 : -ENOMEM;
    sources->list = larger ? larger : sources->list;
    pid_t pid = stats_path_pid(entry->d_name);
    if (larger && pid) {
      struct stats_source *added = &larger[sources->count++];
      *added = (struct stats_source){ .pid = pid, .fd = -1 };
      snprintf(added->directory, sizeof added->directory, "%.255s", directory);
      snprintf(added->path, sizeof added->path, "%.255s/%.63s", directory, entry->d_name);
    }
  }
  closedir(opened);
  return error;
}

static int stats_source_compare(const void *a, const void *b) {
  const struct stats_source *x = a, *y = b;
  int order = (x->pid > y->pid) - (x->pid < y->pid);
  return order ? order : strcmp(x->path, y->path);
}

int stats_sources_find(bool has_other_users, struct stats_sources *sources) {
  char own[STATS_PATH_MAX];
  glob_t others = { 0 };
  *sources = (struct stats_sources){ 0 };
  stats_path_directory(own);
  if (stats_path_check(own, false) == 0) {
    stats_path_sweep(own);
  }
  int error = add_directory(own, sources);
  if (has_other_users && glob("/tmp/stratus-*", 0, NULL, &others) == GLOB_NOSPACE) {
    error = -ENOMEM;
  }
  for (size_t i = 0; i < others.gl_pathc && !error; i++) {
    error = strcmp(others.gl_pathv[i], own) == 0 ? 0 : add_directory(others.gl_pathv[i], sources);
  }
  globfree(&others);
  if (sources->count) {
    qsort(sources->list, sources->count, sizeof *sources->list, stats_source_compare);
  }
  return error;
}

static void source_end(struct stats_source *source, int error) {
  descriptor_close(source->fd);
  source->fd = -1;
  source->error = error;
  if (error) {
    free(source->answer);
    source->answer = NULL;
  }
}

void stats_sources_free(struct stats_sources *sources) {
  for (size_t i = 0; i < sources->count; i++) {
    source_end(&sources->list[i], 0);
    free(sources->list[i].answer);
  }
  free(sources->list);
  *sources = (struct stats_sources){ 0 };
}

/* ---- ask ---- */

/* The name of a socket of the directory's owner, opened so that nobody can exchange it; or negative
 * errno. */
static int open_name(const struct stats_source *source, uid_t *owner) {
  struct stat directory, socket;
  int at = open_private(source->directory, O_PATH, &directory);
  if (at < 0) {
    return -EPERM;
  }
  const char *name = strrchr(source->path, '/') + 1;
  int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = fd < 0 ? -errno : 0;
  close(at);
  if (!error &&
      (fstat(fd, &socket) != 0 || !S_ISSOCK(socket.st_mode) || socket.st_uid != directory.st_uid)) {
    error = -EPERM;
  }
  *owner = directory.st_uid;
  if (error) {
    descriptor_close(fd);
  }
  return error ? error : fd;
}

/* Who listens must be the owner, too: another's socket may have been moved there. */
static int connect_to(int name, uid_t owner, int fd) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", name);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    return errno == EAGAIN ? -ETIMEDOUT : -errno;
  }
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != owner) {
    return -EPERM;
  }
  return 0;
}

static int reach(struct stats_source *source) {
  uid_t owner;
  int name = open_name(source, &owner);
  if (name < 0) {
    return name;
  }
  source->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = source->fd < 0 ? -errno : connect_to(name, owner, source->fd);
  close(name);
  return error;
}

/* -EAGAIN: there is more to come. */
static int read_some(struct stats_source *source, size_t *total) {
  if (source->used + 1 >= source->room) {
    size_t room = source->room ? source->room * 2 : FIRST_BYTES;
    *total += room - source->room;
    char *larger = *total <= STATS_ANSWERS_MAX_BYTES ? realloc(source->answer, room) : NULL;
    if (!larger) {
      return -ENOMEM;
    }
    source->answer = larger;
    source->room = room;
  }
  ssize_t n = recv(source->fd, source->answer + source->used, source->room - source->used - 1, 0);
  if (n < 0) {
    return errno == EINTR ? -EAGAIN : -errno;
  }
  source->used += (size_t)n;
  source->answer[source->used] = '\0';
  return n > 0 ? -EAGAIN : source->used ? 0 : -ENODATA;
}

/* Those that still answer, in polled; returns their number. */
static nfds_t wait_for(struct stats_sources *sources, struct pollfd *polled, uint64_t until_ns) {
  uint64_t now_ns = clock_now_ns();
  nfds_t count = 0;
  for (size_t i = 0; i < sources->count; i++) {
    struct stats_source *source = &sources->list[i];
    if (source->fd >= 0 && now_ns >= until_ns) {
      source_end(source, -ETIMEDOUT);
    } else if (source->fd >= 0) {
      polled[count++] = (struct pollfd){ .fd = source->fd, .events = POLLIN };
    }
  }
  if (count) {
    poll(polled, count, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
  }
  return count;
}

int stats_sources_ask(struct stats_sources *sources, pid_t wanted) {
  struct pollfd *polled = calloc(sources->count + 1, sizeof *polled);
  uint64_t until_ns = clock_now_ns() + STATS_ANSWERS_NS;
  size_t total = 0;
  if (!polled) {
    return -ENOMEM;
  }
  for (size_t i = 0; i < sources->count; i++) {
    struct stats_source *source = &sources->list[i];
    int error = wanted && source->pid != wanted ? -ENOENT : reach(source);
    if (error) {
      source_end(source, error);
    }
  }
  while (wait_for(sources, polled, until_ns) > 0) {
    for (size_t i = 0, place = 0; i < sources->count; i++) {
      struct stats_source *source = &sources->list[i];
      if (source->fd < 0 || polled[place++].revents == 0) {
        continue;
      }
      int error = read_some(source, &total);
      if (error != -EAGAIN) {
        source_end(source, error);
      }
    }
  }
  free(polled);
  for (size_t i = 0; i < sources->count; i++) {
    if (sources->list[i].answer) {
      plain_lines(sources->list[i].answer);
    }
  }
  return 0;
}
