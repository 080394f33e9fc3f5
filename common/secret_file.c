/* SPDX-License-Identifier: Apache-2.0 */
/* See secret_file.h. */
#include "common/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/descriptor.h"

static bool is_private(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return false;
  }
  if (S_ISCHR(status.st_mode)) { /* a device keeps nothing */
    return true;
  }
  mode_t barred = status.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IRWXO;
  return (status.st_mode & barred) == 0;
}

ssize_t secret_file_read(const char *path, char text[SECRET_FILE_MAX]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  ssize_t bytes = is_private(fd) ? descriptor_read(fd, text, SECRET_FILE_MAX) : -EPERM;
  close(fd);
  if (bytes == SECRET_FILE_MAX) {
    return -EFBIG;
  }
  while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) {
    bytes--;
  }
  return bytes == 0 ? -ENODATA : bytes;
}

struct job_secret job_secret_choose(const char *text, const char *path,
                                    char read[SECRET_FILE_MAX]) {
  if (text && *text) {
    return (struct job_secret){ "STRATUS_SECRET", text, (ssize_t)strlen(text) };
  }
  bool has_file = path && *path;
  return (struct job_secret){ "STRATUS_SECRET_FILE", read,
                              has_file ? secret_file_read(path, read) : 0 };
}

const char *secret_file_error(ssize_t error) {
  return error == -ENODATA ? "it is empty"
         : error == -EPERM ? "it is open to other users: chmod 600 it"
                           : strerror((int)-error);
}
