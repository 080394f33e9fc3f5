/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_path.h. */
#include "net_plugin/observe/stats_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/param.h"
#include "net_plugin/observe/limits.h"

const char *stats_path_directory(char path[STATS_PATH_MAX]) {
  const char *wanted = param_string(PARAM_STATS_DIR);
  if (*wanted) {
    snprintf(path, STATS_PATH_MAX, "%s", wanted);
  } else {
    snprintf(path, STATS_PATH_MAX, "/tmp/stratus-%u", (unsigned)geteuid());
  }
  return path;
}

int stats_path_check(const char *directory, bool creates) {
  if (creates && mkdir(directory, 0700) != 0 && errno != EEXIST) {
    return -errno;
  }
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  struct stat found;
  int error = fstat(fd, &found) == 0 ? 0 : -errno;
  close(fd);
  /* The setgid bit may be inherited from the parent; it grants no access. */
  if (!error && (found.st_uid != geteuid() || (found.st_mode & 07777 & ~(mode_t)S_ISGID) != 0700)) {
    error = -EPERM;
  }
  return error;
}

pid_t stats_path_pid(const char *name) {
  size_t digits = strspn(name, "0123456789");
  if (digits == 0 || digits > 9 || *name == '0' || name[digits] != '-') {
    return 0;
  }
  const char *id = name + digits + 1;
  size_t id_digits = strspn(id, "0123456789abcdef");
  if (id_digits == 0 || id_digits >= STATS_ID_MAX || strcmp(id + id_digits, ".sock") != 0) {
    return 0;
  }
  return (pid_t)atoi(name);
}

/* Nobody listens there. The number of the process does not tell: of another container it is
 * another's here, or nobody's. */
static bool is_stale(const char *socket_path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  if (strlen(socket_path) >= sizeof address.sun_path) {
    return false;
  }
  strcpy(address.sun_path, socket_path);
  int fd = DESCRIPTOR(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) {
    return false;
  }
  bool is_refused =
      connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
  descriptor_close(fd);
  return is_refused;
}

void stats_path_sweep(const char *directory) {
  int fd = DESCRIPTOR(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR *opened = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;
  for (int i = 0; opened && i < STATS_SWEEP_MAX && (entry = readdir(opened)); i++) {
    char path[STATS_PATH_MAX + sizeof entry->d_name];
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    if (stats_path_pid(entry->d_name) && is_stale(path)) {
      unlink(path);
    }
  }
  if (opened) {
    descriptor_begin();
    descriptor_unmark(fd);
    closedir(opened);
    descriptor_end();
  } else if (fd >= 0) {
    descriptor_close(fd);
  }
}
