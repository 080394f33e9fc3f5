/* SPDX-License-Identifier: Apache-2.0 */
/* See secret_file.h. */
#include "common/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t secret_file_read(const char *path, char text[SECRET_FILE_MAX], mode_t *mode) {
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  *mode = 0;
  if (fd < 0) {
    return -errno;
  }
  if (fstat(fd, &status) == 0) {
    *mode = status.st_mode;
  }
  ssize_t bytes = read(fd, text, SECRET_FILE_MAX);
  int error = errno;
  close(fd);
  if (bytes < 0) {
    return -error;
  }
  if (bytes == SECRET_FILE_MAX) {
    return -EFBIG;
  }
  while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) {
    bytes--;
  }
  return bytes == 0 ? -ENODATA : bytes;
}
