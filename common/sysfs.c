/* SPDX-License-Identifier: Apache-2.0 */
/* Small reads of the kernel's files below a root. */
#include "common/sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/quantity.h"

const char *sysfs_process_root = "/";

/* "root/path"; -ENAMETOOLONG if it does not fit. */
static int format_path(char full[SYSFS_PATH_MAX], const char *root, const char *path,
                       va_list arguments) {
  int root_length = snprintf(full, SYSFS_PATH_MAX, "%s/", root);
  if (root_length < 0 || root_length >= SYSFS_PATH_MAX) {
    return -ENAMETOOLONG;
  }
  size_t left = (size_t)(SYSFS_PATH_MAX - root_length);
  int path_length = vsnprintf(full + root_length, left, path, arguments);
  return path_length < 0 || (size_t)path_length >= left ? -ENAMETOOLONG : 0;
}

static int read_file(const char *full, char *text, size_t text_bytes) {
  int fd = DESCRIPTOR(open(full, O_RDONLY | O_CLOEXEC));
  if (fd < 0) {
    return -errno;
  }
  ssize_t length = descriptor_read(fd, text, text_bytes - 1);
  descriptor_close(fd);
  text[length > 0 ? length : 0] = '\0';
  return (int)length;
}

/* Takes the blanks off both ends; returns the length. */
static int trim(char *text) {
  size_t first = strspn(text, " \t\r\n");
  size_t length = strlen(text + first);
  while (length > 0 && isspace((unsigned char)text[first + length - 1])) {
    length--;
  }
  memmove(text, text + first, length);
  text[length] = '\0';
  return (int)length;
}

static int read_trimmed(const char *root, char *text, size_t text_bytes, const char *path,
                        va_list arguments) {
  char full[SYSFS_PATH_MAX];
  int result = format_path(full, root, path, arguments);
  if (result == 0) {
    result = read_file(full, text, text_bytes);
  }
  return result < 0 ? result : trim(text);
}

int sysfs_read_text(const char *root, char *text, size_t text_bytes, const char *path, ...) {
  va_list arguments;
  va_start(arguments, path);
  int result = read_trimmed(root, text, text_bytes, path, arguments);
  va_end(arguments);
  return result;
}

int sysfs_read_int(const char *root, int64_t *value, const char *path, ...) {
  char text[64];
  va_list arguments;
  va_start(arguments, path);
  int result = read_trimmed(root, text, sizeof text, path, arguments);
  va_end(arguments);
  return result < 0 ? result : quantity_parse_int(text, value);
}

bool sysfs_exists(const char *root, const char *path, ...) {
  char full[SYSFS_PATH_MAX];
  va_list arguments;
  va_start(arguments, path);
  int result = format_path(full, root, path, arguments);
  va_end(arguments);
  return result == 0 && access(full, F_OK) == 0;
}

/* Cuts the root off `full`; -EXDEV if it is not below the root. */
static int strip_root(const char *root, const char *full, char *path, size_t path_bytes) {
  char real_root[SYSFS_PATH_MAX];
  if (!realpath(root, real_root)) {
    return -errno;
  }
  size_t length = strcmp(real_root, "/") == 0 ? 0 : strlen(real_root);
  if (strncmp(full, real_root, length) != 0 || (full[length] != '/' && full[length] != '\0')) {
    return -EXDEV;
  }
  int written = snprintf(path, path_bytes, "%s", full[length] ? full + length : "/");
  return written < 0 || (size_t)written >= path_bytes ? -ENAMETOOLONG : written;
}

int sysfs_resolve(const char *root, char *resolved, size_t resolved_bytes, const char *path, ...) {
  char full[SYSFS_PATH_MAX];
  char real[SYSFS_PATH_MAX];
  va_list arguments;
  va_start(arguments, path);
  int result = format_path(full, root, path, arguments);
  va_end(arguments);
  if (result < 0) {
    return result;
  }
  if (!realpath(full, real)) {
    return -errno;
  }
  return strip_root(root, real, resolved, resolved_bytes);
}

int sysfs_read_driver(const char *root, char *driver, size_t driver_bytes, const char *device,
                      ...) {
  char full[SYSFS_PATH_MAX], link[SYSFS_PATH_MAX];
  va_list arguments;
  driver[0] = '\0';
  va_start(arguments, device);
  int result = format_path(full, root, device, arguments);
  va_end(arguments);
  if (result < 0 || strlen(full) + sizeof "/driver" > sizeof full) {
    return -ENAMETOOLONG;
  }
  ssize_t length = readlink(strcat(full, "/driver"), link, sizeof link - 1);
  if (length < 0) {
    return -errno;
  }
  link[length] = '\0';
  const char *slash = strrchr(link, '/');
  snprintf(driver, driver_bytes, "%s", slash ? slash + 1 : link);
  return (int)strlen(driver);
}

size_t sysfs_find(const char *root, glob_t *found, const char *pattern, ...) {
  char full[SYSFS_PATH_MAX];
  va_list arguments;
  va_start(arguments, pattern);
  int result = format_path(full, root, pattern, arguments);
  va_end(arguments);
  *found = (glob_t){ 0 };
  return result == 0 && glob(full, GLOB_NOSORT, NULL, found) == 0 ? found->gl_pathc : 0;
}

const char *sysfs_name(const char *path) {
  return strrchr(path, '/') + 1;
}
