/* SPDX-License-Identifier: Apache-2.0 */
/* Reads below an invented root, good and bad. */
#include "common/sysfs.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define SYSFS_TEST(function) UNIT_TEST_WITH(function, test_tree_create, test_tree_remove)

SYSFS_TEST(text_is_trimmed) {
  char text[16];
  tree_write(&test_tree, "a/text", " \tAmazon EC2 \n\n");
  tree_write(&test_tree, "a/empty", "%s", "");
  tree_write(&test_tree, "a/long", "0123456789abcdefghij\n");
  assert_int_equal(sysfs_read_text(test_tree.root, text, sizeof text, "a/%s", "text"), 10);
  assert_string_equal(text, "Amazon EC2");
  assert_int_equal(sysfs_read_text(test_tree.root, text, sizeof text, "a/empty"), 0);
  assert_string_equal(text, "");
  assert_int_equal(sysfs_read_text(test_tree.root, text, sizeof text, "a/long"), 15);
  assert_string_equal(text, "0123456789abcde");
  assert_int_equal(sysfs_read_text(test_tree.root, text, sizeof text, "a/missing"), -ENOENT);
  assert_int_equal(sysfs_read_text(test_tree.root, text, sizeof text, "a"), -EISDIR);
}

SYSFS_TEST(numbers_are_checked) {
  int64_t number = 7;
  tree_write(&test_tree, "speed", "100000\n");
  tree_write(&test_tree, "unknown", "-1\n");
  tree_write(&test_tree, "words", "fast\n");
  assert_int_equal(sysfs_read_int(test_tree.root, &number, "speed"), 0);
  assert_int_equal(number, 100000);
  assert_int_equal(sysfs_read_int(test_tree.root, &number, "unknown"), 0);
  assert_int_equal(number, -1);
  assert_int_equal(sysfs_read_int(test_tree.root, &number, "words"), -EINVAL);
  assert_int_equal(sysfs_read_int(test_tree.root, &number, "missing"), -ENOENT);
  assert_int_equal(number, -1);
}

SYSFS_TEST(links_resolve_below_the_root) {
  char path[128];
  tree_write(&test_tree, "sys/devices/pci0000:00/0000:00:05.0/vendor", "0x1d0f\n");
  tree_link(&test_tree, "sys/class/net/eth0/device", "../../../devices/pci0000:00/0000:00:05.0");
  const char *expected = "/sys/devices/pci0000:00/0000:00:05.0";
  assert_int_equal(
      sysfs_resolve(test_tree.root, path, sizeof path, "sys/class/net/%s/device", "eth0"),
      (int)strlen(expected));
  assert_string_equal(path, expected);
  assert_int_equal(sysfs_resolve(test_tree.root, path, 8, "sys/class/net/eth0/device"),
                   -ENAMETOOLONG);
  assert_int_equal(sysfs_resolve(test_tree.root, path, sizeof path, "sys/class/net/eth1"), -ENOENT);
  tree_link(&test_tree, "sys/outside", "/etc");
  assert_int_equal(sysfs_resolve(test_tree.root, path, sizeof path, "sys/outside"), -EXDEV);
  assert_int_equal(sysfs_resolve("/", path, sizeof path, "proc"), 5);
  assert_string_equal(path, "/proc");
  assert_true(sysfs_exists(test_tree.root, "sys/class/net/eth0/device/vendor"));
  assert_false(sysfs_exists(test_tree.root, "sys/class/net/eth0/device/numa_node"));
}

SYSFS_TEST(drivers_are_named) {
  char driver[12], same[1];
  tree_make_directory(&test_tree, "sys/bus/pci/drivers/mlx5_core");
  tree_make_directory(&test_tree, "sys/bus/pci/drivers/a_longer_name");
  tree_make_directory(&test_tree, "sys/devices/bare");
  tree_link(&test_tree, "sys/devices/nic/driver", "../../bus/pci/drivers/mlx5_core");
  tree_link(&test_tree, "sys/devices/odd/driver", "../../bus/pci/drivers/a_longer_name");
  assert_int_equal(
      sysfs_read_driver(test_tree.root, driver, sizeof driver, "sys/devices/%s", "nic"), 9);
  assert_string_equal(driver, "mlx5_core");
  assert_int_equal(sysfs_read_driver(test_tree.root, driver, sizeof driver, "sys/devices/odd"), 11);
  assert_string_equal(driver, "a_longer_na");
  assert_int_equal(sysfs_read_driver(test_tree.root, same, sizeof same, "sys/devices/nic"), 0);
  assert_string_equal(same, "");
  assert_int_equal(sysfs_read_driver(test_tree.root, driver, sizeof driver, "sys/devices/bare"),
                   -ENOENT);
  assert_string_equal(driver, "");
}

SYSFS_TEST(overlong_paths_are_refused) {
  char name[SYSFS_PATH_MAX];
  char text[8];
  int64_t number;
  glob_t found;
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_int_equal(sysfs_read_text(test_tree.root, text, sizeof text, "%s", name), -ENAMETOOLONG);
  assert_int_equal(sysfs_read_int(name, &number, "a"), -ENAMETOOLONG);
  assert_int_equal(sysfs_find(test_tree.root, &found, "%s", name), 0);
  assert_int_equal(sysfs_read_driver(test_tree.root, text, sizeof text, "%s", name), -ENAMETOOLONG);
  assert_false(sysfs_exists(test_tree.root, "%s", name));
}

SYSFS_TEST(what_matches_is_found) {
  glob_t found;
  tree_make_directory(&test_tree, "net/lower_eth2");
  tree_make_directory(&test_tree, "net/.lower_hidden");
  assert_int_equal(sysfs_find(test_tree.root, &found, "%s/lower_*", "net"), 1);
  assert_string_equal(sysfs_name(found.gl_pathv[0]), "lower_eth2");
  globfree(&found);
  assert_int_equal(sysfs_find(test_tree.root, &found, "net/upper_*"), 0);
  globfree(&found);
  assert_int_equal(sysfs_find(test_tree.root, &found, "missing/*"), 0);
  globfree(&found);
}
