/* SPDX-License-Identifier: Apache-2.0 */
/* A group's limit holds for those below it, too. A container without a namespace of control groups
 * sees its own at the top, under a path that is not there. */
#include "net_plugin/engine/thread_room.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/sysfs.h"

struct narrowest {
  const char *root;
  int64_t room;
  char *limit;
};

static void look_at(struct narrowest *found, const char *directory) {
  int64_t most, used;
  if (sysfs_read_int(found->root, &most, "%s/pids.max", directory) != 0 || /* "max": no limit */
      sysfs_read_int(found->root, &used, "%s/pids.current", directory) != 0) {
    return;
  }
  int64_t room = most > used ? most - used : 0;
  if (room < found->room) {
    found->room = room;
    snprintf(found->limit, THREAD_ROOM_TEXT_MAX,
             "pids.max of /%.300s is %" PRId64 ", of which %" PRId64 " are used", directory, most,
             used);
  }
}

/* The group and all above it. */
static void look_up(struct narrowest *found, const char *mount, const char *path) {
  char directory[SYSFS_TEXT_MAX];
  size_t top = strlen(mount);
  int length = snprintf(directory, sizeof directory, "%s%s", mount, path[1] ? path : "");
  if (length < 0 || length >= (int)sizeof directory) {
    return;
  }
  for (char *end = directory + length; end;) {
    *end = '\0';
    look_at(found, directory);
    end = strlen(directory) > top ? strrchr(directory + top, '/') : NULL;
  }
}

/* Lines of /proc/self/cgroup: "8:pids:/docker/1a", and "0::/user.slice" of version 2. */
int64_t thread_room(const char *root, char limit[THREAD_ROOM_TEXT_MAX]) {
  char text[SYSFS_TEXT_MAX];
  struct narrowest found = { root, THREAD_ROOM_FREE, limit };
  limit[0] = '\0';
  if (sysfs_read_text(root, text, sizeof text, "proc/self/cgroup") < 0) {
    return found.room;
  }
  char *rest = text;
  for (char *line; (line = strsep(&rest, "\n"));) {
    char *path = strchr(line, '/'), *pids = strstr(line, ":pids:");
    if (path && strncmp(line, "0::/", 4) == 0) {
      look_up(&found, "sys/fs/cgroup", path);
    } else if (path && pids && pids < path) {
      look_up(&found, "sys/fs/cgroup/pids", path);
    }
  }
  return found.room;
}
