/* SPDX-License-Identifier: Apache-2.0 */
/* thread_room: both versions of control groups, in and outside of containers. */
#include "net_plugin/engine/thread_room.h"

#include <stdio.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static char limit[THREAD_ROOM_TEXT_MAX];

static void limit_group(const char *directory, const char *most, const char *used) {
  char path[256];
  snprintf(path, sizeof path, "%s/pids.max", directory);
  tree_write(&test_tree, path, "%s\n", most);
  snprintf(path, sizeof path, "%s/pids.current", directory);
  tree_write(&test_tree, path, "%s\n", used);
}

UNIT_TEST_WITH(without_a_limit_there_is_room, test_tree_create, test_tree_remove) {
  assert_true(thread_room(test_tree.root, limit) == THREAD_ROOM_FREE); /* nothing to read */
  tree_write(&test_tree, "proc/self/cgroup", "12:cpu:/a\n0::/user.slice\n");
  limit_group("sys/fs/cgroup/user.slice", "max", "3");
  assert_true(thread_room(test_tree.root, limit) == THREAD_ROOM_FREE);
  assert_string_equal(limit, "");
}

UNIT_TEST_WITH(the_narrowest_group_counts, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup", "0::/pod/one\n");
  limit_group("sys/fs/cgroup/pod/one", "1000", "10");
  limit_group("sys/fs/cgroup/pod", "100", "70");
  assert_int_equal(thread_room(test_tree.root, limit), 30);
  assert_string_equal(limit, "pids.max of /sys/fs/cgroup/pod is 100, of which 70 are used");
  limit_group("sys/fs/cgroup/pod", "100", "110"); /* lowered below what there is */
  assert_int_equal(thread_room(test_tree.root, limit), 0);
}

UNIT_TEST_WITH(version_1_has_a_tree_of_its_own, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup",
             "9:name=systemd:/pids:x\n8:cpu,pids:/no\n8:pids:/docker/1a\n");
  limit_group("sys/fs/cgroup/pids/docker/1a", "40", "8");
  assert_int_equal(thread_room(test_tree.root, limit), 32);
}

UNIT_TEST_WITH(a_container_may_see_itself_at_the_top, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup", "8:pids:/docker/1a\n0::/\n");
  limit_group("sys/fs/cgroup/pids", "20", "18");
  assert_int_equal(thread_room(test_tree.root, limit), 2);
  limit_group("sys/fs/cgroup", "19", "18");
  assert_int_equal(thread_room(test_tree.root, limit), 1);
  assert_string_equal(limit, "pids.max of /sys/fs/cgroup is 19, of which 18 are used");
}

UNIT_MAIN(NULL, NULL)
