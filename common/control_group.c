/* SPDX-License-Identifier: Apache-2.0 */
/* A group's limit holds for those below it, too. A container without a namespace of control groups
 * sees its own at the top, under a path that is not there. */
#include "common/control_group.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sysfs.h"

struct narrowest {
  const char *root;
  int64_t room;
  char *limit;
};

typedef void look_fn(struct narrowest *found, const char *directory);

/* ---- the groups ---- */

/* The group and all above it. */
static void look_up(struct narrowest *found, look_fn *look, const char *mount, const char *path) {
  char directory[SYSFS_TEXT_MAX];
  size_t top = strlen(mount);
  int length = snprintf(directory, sizeof directory, "%s%s", mount, path[1] ? path : "");
  if (length < 0 || length >= (int)sizeof directory) {
    return;
  }
  for (char *end = directory + length; end;) {
    *end = '\0';
    look(found, directory);
    end = strlen(directory) > top ? strrchr(directory + top, '/') : NULL;
  }
}

static bool is_among(const char *controller, const char *list, size_t bytes) {
  size_t length = strlen(controller);
  for (const char *at = list; at + length <= list + bytes; at += strcspn(at, ",") + 1) {
    if (strncmp(at, controller, length) == 0 &&
        (at + length == list + bytes || at[length] == ',')) {
      return true;
    }
  }
  return false;
}

/* Version 1: the hierarchy of several controllers has their names, and links of each one's. */
static void look_up_hierarchy(struct narrowest *found, look_fn *look, const char *list, int bytes,
                              const char *controller, const char *path) {
  char mount[SYSFS_TEXT_MAX];
  snprintf(mount, sizeof mount, "sys/fs/cgroup/%.*s", bytes, list);
  if (!sysfs_exists(found->root, "%s", mount)) {
    snprintf(mount, sizeof mount, "sys/fs/cgroup/%s", controller);
  }
  look_up(found, look, mount, path);
}

/* Lines of /proc/self/cgroup: "8:cpu,cpuacct:/docker/1a", and "0::/user.slice" of version 2. */
static int64_t find_narrowest(const char *root, const char *controller, look_fn *look,
                              char limit[CONTROL_GROUP_TEXT_MAX]) {
  char text[SYSFS_TEXT_MAX];
  struct narrowest found = { root, CONTROL_GROUP_FREE, limit };
  limit[0] = '\0';
  if (sysfs_read_text(root, text, sizeof text, "proc/self/cgroup") < 0) {
    return found.room;
  }
  char *rest = text;
  for (char *line; (line = strsep(&rest, "\n"));) {
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path || path[1] != '/') {
      continue;
    }
    list++;
    int bytes = (int)(path++ - list);
    if (bytes == 0) {
      look_up(&found, look, "sys/fs/cgroup", path);
    } else if (is_among(controller, list, (size_t)bytes)) {
      look_up_hierarchy(&found, look, list, bytes, controller, path);
    }
  }
  return found.room;
}

/* ---- threads ---- */

static void look_at_threads(struct narrowest *found, const char *directory) {
  int64_t most, used;
  if (sysfs_read_int(found->root, &most, "%s/pids.max", directory) != 0 || /* "max": no limit */
      sysfs_read_int(found->root, &used, "%s/pids.current", directory) != 0) {
    return;
  }
  int64_t room = most > used ? most - used : 0;
  if (room < found->room) {
    found->room = room;
    snprintf(found->limit, CONTROL_GROUP_TEXT_MAX,
             "pids.max of /%.300s is %" PRId64 ", of which %" PRId64 " are used", directory, most,
             used);
  }
}

int64_t control_group_threads(const char *root, char limit[CONTROL_GROUP_TEXT_MAX]) {
  return find_narrowest(root, "pids", look_at_threads, limit);
}

/* ---- CPUs ---- */

/* How much time of CPUs a group gets in each period, in microseconds. */
static bool read_quota(const char *root, const char *directory, int64_t *quota, int64_t *period) {
  char text[64];
  bool is_read = sysfs_read_text(root, text, sizeof text, "%s/cpu.max", directory) > 0
                     ? sscanf(text, "%" SCNd64 " %" SCNd64, quota, period) == 2 /* "max 100000" */
                     : sysfs_read_int(root, quota, "%s/cpu.cfs_quota_us", directory) == 0 &&
                           sysfs_read_int(root, period, "%s/cpu.cfs_period_us", directory) == 0;
  return is_read && *quota > 0 && *period > 0;
}

/* Part of a CPU is none: a thread on it would wait for most of its time. */
static void look_at_cpus(struct narrowest *found, const char *directory) {
  int64_t quota, period;
  if (!read_quota(found->root, directory, &quota, &period)) {
    return;
  }
  int64_t cpus = quota / period > 0 ? quota / period : 1;
  if (cpus < found->room) {
    found->room = cpus;
    snprintf(found->limit, CONTROL_GROUP_TEXT_MAX, "the quota of /%.300s is %.4g CPUs", directory,
             (double)quota / (double)period);
  }
}

int64_t control_group_quota(const char *root, char limit[CONTROL_GROUP_TEXT_MAX]) {
  return find_narrowest(root, "cpu", look_at_cpus, limit);
}

unsigned control_group_cpus(const char *root, char limit[CONTROL_GROUP_TEXT_MAX]) {
  cpu_set_t allowed;
  bool is_known = sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0;
  int64_t cpus = is_known ? CPU_COUNT(&allowed) : 1, quota = control_group_quota(root, limit);
  if (quota < cpus) {
    return (unsigned)quota;
  }
  limit[0] = '\0';
  return (unsigned)cpus;
}
