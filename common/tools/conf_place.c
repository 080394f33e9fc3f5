/* SPDX-License-Identifier: Apache-2.0 */
/* See conf_place.h. */
#include "common/tools/conf_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel follows (path_resolution(7)) */

/* What is still to be walked from the directory. */
struct walk {
  struct conf_place *place;
  char left[2 * PATH_MAX];
  unsigned links;
};

static void enter(struct walk *walk, int directory) {
  close(walk->place->directory);
  walk->place->directory = directory;
}

/* Takes the next name; false: there was none. */
static bool take_name(struct walk *walk, char name[NAME_MAX + 1], int *error) {
  char *begin = walk->left + strspn(walk->left, "/");
  size_t length = strcspn(begin, "/");
  *error = length > NAME_MAX ? -ENAMETOOLONG : 0;
  if (length == 0 || *error) {
    return false;
  }
  memcpy(name, begin, length);
  name[length] = '\0';
  memmove(walk->left, begin + length, strlen(begin + length) + 1);
  return true;
}

static int start_at_root(struct walk *walk) {
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    return -errno;
  }
  enter(walk, root);
  return 0;
}

/* Puts what the link holds before the rest of the way. */
static int follow(struct walk *walk, int link, const struct stat *status) {
  char target[PATH_MAX], left[2 * PATH_MAX];
  if (geteuid() == 0 && status->st_uid != 0) {
    return -EPERM;
  }
  if (++walk->links > LINKS_MAX) {
    return -ELOOP;
  }
  ssize_t length = readlinkat(link, "", target, sizeof target - 1);
  if (length < 0) {
    return -errno;
  }
  target[length] = '\0';
  int bytes = snprintf(left, sizeof left, "%s%s", target, walk->left);
  if (bytes < 0 || (size_t)bytes >= sizeof left) {
    return -ENAMETOOLONG;
  }
  memcpy(walk->left, left, (size_t)bytes + 1);
  return target[0] == '/' ? start_at_root(walk) : 0;
}

/* One name further. 1: it is the last one, and no link. */
static int step(struct walk *walk) {
  struct stat status;
  char *name = walk->place->name;
  int error;
  if (!take_name(walk, name, &error)) {
    return error ? error : -EISDIR;
  }
  bool is_last = walk->left[0] == '\0';
  int there = openat(walk->place->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (there < 0) {
    return is_last && errno == ENOENT ? 1 : -errno;
  }
  error = fstat(there, &status) == 0 ? 0 : -errno;
  if (!error && S_ISLNK(status.st_mode)) {
    error = follow(walk, there, &status);
  } else if (!error && S_ISDIR(status.st_mode)) {
    enter(walk, there);
    return 0;
  } else if (!error) {
    error = is_last ? 1 : -ENOTDIR;
  }
  close(there);
  return error;
}

int conf_place_open(const char *path, struct conf_place *place) {
  struct walk walk = { .place = place };
  int bytes = snprintf(walk.left, sizeof walk.left, "%s", path);
  if (bytes < 0 || (size_t)bytes >= sizeof walk.left) {
    return -ENAMETOOLONG;
  }
  place->directory = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int error = place->directory < 0 ? -errno : 0;
  while (error == 0) {
    error = step(&walk);
  }
  if (error < 0) {
    conf_place_close(place);
    return error;
  }
  return 0;
}

void conf_place_close(struct conf_place *place) {
  if (place->directory >= 0) {
    close(place->directory);
    place->directory = -1;
  }
}
