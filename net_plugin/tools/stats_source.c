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
#include "net_plugin/observe/stats_path.h"
#include "net_plugin/tools/limits.h"

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

static int find(bool has_other_users, struct stats_sources *sources) {
  char own[STATS_PATH_MAX];
  glob_t others = { 0 };
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

/* An answer while it is read. */
struct answer {
  int fd, error;
  uint64_t until_ns;
  size_t *left; /* bytes, of all answers */
};

/* The next bytes; jansson calls it. */
static size_t read_some(void *to, size_t room, void *argument) {
  struct answer *answer = argument;
  ssize_t got;
  while ((got = recv(answer->fd, to, room, 0)) < 0 && (errno == EAGAIN || errno == EINTR)) {
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= answer->until_ns) {
      answer->error = -ETIMEDOUT;
      return (size_t)-1;
    }
    struct pollfd polled = { .fd = answer->fd, .events = POLLIN };
    poll(&polled, 1, (int)((answer->until_ns - now_ns) / NS_PER_MS) + 1);
  }
  answer->error = got < 0 ? -errno : (size_t)got > *answer->left ? -ENOMEM : 0;
  *answer->left -= answer->error ? 0 : (size_t)got;
  return answer->error ? (size_t)-1 : (size_t)got;
}

/* Those that come late wait for those before: what they have sent is there at once. */
static void read_document(struct stats_source *source, uint64_t until_ns, size_t *left) {
  struct answer answer = { .fd = source->fd, .until_ns = until_ns, .left = left };
  size_t before = *left;
  source->document = json_load_callback(read_some, &answer, 0, NULL);
  if (!source->document) {
    source->error = answer.error ? answer.error : *left < before ? -EBADMSG : -ENODATA;
  }
}

int stats_sources_read(bool has_other_users, pid_t wanted, struct stats_sources *sources) {
  *sources = (struct stats_sources){ 0 };
  int error = find(has_other_users, sources);
  for (size_t i = 0; i < sources->count && !error; i++) { /* all write their answers at once */
    struct stats_source *source = &sources->list[i];
    source->error = wanted && source->pid != wanted ? -ENOENT : reach(source);
  }
  size_t left = STATS_ANSWERS_MAX_BYTES;
  uint64_t until_ns = clock_now_ns() + STATS_ANSWERS_NS;
  for (size_t i = 0; i < sources->count && !error; i++) {
    if (!sources->list[i].error) {
      read_document(&sources->list[i], until_ns, &left);
    }
  }
  return error;
}

void stats_sources_free(struct stats_sources *sources) {
  for (size_t i = 0; i < sources->count; i++) {
    descriptor_close(sources->list[i].fd);
    json_decref(sources->list[i].document);
  }
  free(sources->list);
  *sources = (struct stats_sources){ 0 };
}
