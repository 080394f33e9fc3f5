/* SPDX-License-Identifier: Apache-2.0 */
/* control_group: both versions, in and outside of containers. */
#include "common/control_group.h"

#include <stdio.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static char limit[CONTROL_GROUP_TEXT_MAX];

static void limit_group(const char *directory, const char *most, const char *used) {
  char path[256];
  snprintf(path, sizeof path, "%s/pids.max", directory);
  tree_write(&test_tree, path, "%s\n", most);
  snprintf(path, sizeof path, "%s/pids.current", directory);
  tree_write(&test_tree, path, "%s\n", used);
}

UNIT_TEST_WITH(without_a_limit_there_is_room, test_tree_create, test_tree_remove) {
  assert_true(control_group_threads(test_tree.root, limit) ==
              CONTROL_GROUP_FREE); /* nothing to read */
  tree_write(&test_tree, "proc/self/cgroup", "12:cpu:/a\n0::/user.slice\n");
  limit_group("sys/fs/cgroup/user.slice", "max", "3");
  assert_true(control_group_threads(test_tree.root, limit) == CONTROL_GROUP_FREE);
  assert_string_equal(limit, "");
}

UNIT_TEST_WITH(the_narrowest_group_counts, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup", "0::/pod/one\n");
  limit_group("sys/fs/cgroup/pod/one", "1000", "10");
  limit_group("sys/fs/cgroup/pod", "100", "70");
  assert_int_equal(control_group_threads(test_tree.root, limit), 30);
  assert_string_equal(limit, "pids.max of /sys/fs/cgroup/pod is 100, of which 70 are used");
  limit_group("sys/fs/cgroup/pod", "100", "110"); /* lowered below what there is */
  assert_int_equal(control_group_threads(test_tree.root, limit), 0);
}

UNIT_TEST_WITH(version_1_has_a_tree_of_its_own, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup",
             "9:name=systemd:/pids:x\n8:cpu,pids:/no\n8:pids:/docker/1a\n");
  limit_group("sys/fs/cgroup/pids/docker/1a", "40", "8");
  assert_int_equal(control_group_threads(test_tree.root, limit), 32);
}

UNIT_TEST_WITH(a_container_may_see_itself_at_the_top, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup", "8:pids:/docker/1a\n0::/\n");
  limit_group("sys/fs/cgroup/pids", "20", "18");
  assert_int_equal(control_group_threads(test_tree.root, limit), 2);
  limit_group("sys/fs/cgroup", "19", "18");
  assert_int_equal(control_group_threads(test_tree.root, limit), 1);
  assert_string_equal(limit, "pids.max of /sys/fs/cgroup is 19, of which 18 are used");
}

static int64_t quota(const char *version_2, const char *quota_us, const char *period_us) {
  if (version_2) {
    tree_write(&test_tree, "sys/fs/cgroup/pod/one/cpu.max", "%s\n", version_2);
  } else {
    tree_write(&test_tree, "sys/fs/cgroup/cpu,cpuacct/docker/1a/cpu.cfs_quota_us", "%s\n",
               quota_us);
    tree_write(&test_tree, "sys/fs/cgroup/cpu,cpuacct/docker/1a/cpu.cfs_period_us", "%s\n",
               period_us);
  }
  return control_group_quota(test_tree.root, limit);
}

UNIT_TEST_WITH(a_quota_is_a_number_of_cpus, test_tree_create, test_tree_remove) {
  assert_true(control_group_quota(test_tree.root, limit) == CONTROL_GROUP_FREE);
  tree_write(&test_tree, "proc/self/cgroup", "0::/pod/one\n");
  assert_true(quota("max 100000", NULL, NULL) == CONTROL_GROUP_FREE);
  assert_string_equal(limit, "");
  assert_int_equal(quota("400000 100000", NULL, NULL), 4);
  assert_int_equal(quota("250000 100000", NULL, NULL), 2);
  assert_string_equal(limit, "the quota of /sys/fs/cgroup/pod/one is 2.5 CPUs");
  assert_int_equal(quota("5000 100000", NULL, NULL), 1);
  assert_true(quota("0 0", NULL, NULL) == CONTROL_GROUP_FREE);
  assert_true(quota("nonsense", NULL, NULL) == CONTROL_GROUP_FREE);
}

UNIT_TEST_WITH(version_1_has_a_quota_too, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup",
             "9:cpuset:/docker/1a\n4:cpu,cpuacct:/docker/1a\n0::/\n");
  assert_true(quota(NULL, "-1", "100000") == CONTROL_GROUP_FREE);
  assert_int_equal(quota(NULL, "300000", "100000"), 3);
  tree_write(&test_tree, "proc/self/cgroup", "4:cpuacct,cpu:/docker/1a\n"); /* by its link */
  tree_write(&test_tree, "sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "200000\n");
  tree_write(&test_tree, "sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
  assert_int_equal(control_group_quota(test_tree.root, limit), 2);
}

UNIT_TEST_WITH(the_process_has_no_more_cpus_than_its_quota, test_tree_create, test_tree_remove) {
  tree_write(&test_tree, "proc/self/cgroup", "0::/pod/one\n");
  unsigned allowed = control_group_cpus(test_tree.root, limit);
  assert_true(allowed >= 1);
  assert_int_equal(quota("100000000 1000", NULL, NULL), 100000);
  assert_int_equal(control_group_cpus(test_tree.root, limit), allowed);
  assert_string_equal(limit, "");
  quota("100000 100000", NULL, NULL);
  assert_int_equal(control_group_cpus(test_tree.root, limit), 1);
  assert_true(allowed == 1 || limit[0]);
}
