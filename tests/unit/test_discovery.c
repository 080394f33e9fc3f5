/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of this machine, of which only the loopback is sure to be there, with parameters and
 * profiles of the test's own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "net_plugin/plugin/discovery.h"
#include "tests/lib/json_text.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct discovery found;

/* Discovers with STRATUS_PROFILE=<tree>/<profile> (none if NULL) and one more variable. */
static int discover(const char *profile, const char *more) {
  char path[256] = "", extra[64] = "";
  if (profile) {
    snprintf(path, sizeof(path), "STRATUS_PROFILE=%s/%s", test_tree.root, profile);
  }
  snprintf(extra, sizeof(extra), "%s", more ? more : "");
  char *environment[] = { extra, path, NULL };
  param_load(environment);
  log_capture_start();
  discovery_free(&found);
  int rc = discovery_run(&found);
  log_capture_stop();
  return rc;
}

static int set_up(void **context) {
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
  test_tree_create(context);
  tree_write(&test_tree, "good.profile", "%s",
             json_text("{'schema': 2, 'id': 'test', 'net': {'speed_mbps': 25000}}"));
  tree_write(&test_tree, "bad.profile", "{\"unheard-of\": 1}");
  return 0;
}

static int tear_down(void **context) {
  test_tree_remove(context);
  discovery_free(&found);
  param_load((char *[]){ NULL });
  return unsetenv("NCCL_SOCKET_IFNAME");
}

UNIT_TEST_WITH(no_interface_has_reasons, set_up, tear_down) {
  setenv("NCCL_SOCKET_IFNAME", "=absent0", 1);
  assert_int_equal(discover(NULL, NULL), 0);
  assert_int_equal(found.devices.count, 0);
  char text[DISCOVERY_TEXT_MAX];
  discovery_unused_text(&found, text);
  const char *first = strstr(text, "lo does not match NCCL_SOCKET_IFNAME");
  assert_non_null(first);
  assert_null(strstr(first + 1, "; lo ")); /* once, however many addresses it has */
  static const struct discovery none;
  assert_string_equal(discovery_unused_text(&none, text), "there is none with an address");
}

UNIT_TEST_WITH(a_profile_is_used, set_up, tear_down) {
  assert_int_equal(discover("good.profile", NULL), 0);
  assert_true(found.has_profile);
  assert_string_equal(found.devices.profile_id, "test");
  assert_int_equal(found.devices.devices[0].speed_mbps, 25000);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

UNIT_TEST_WITH(a_bad_profile_is_told, set_up, tear_down) {
  assert_int_equal(discover("bad.profile", NULL), 0);
  assert_false(found.has_profile);
  assert_int_equal(found.devices.count, 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_true(log_capture_find("bad.profile: a profile has no key") > 0);

  assert_int_equal(discover("missing.profile", NULL), 0);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_true(log_capture_find("missing.profile") > 0);
}

UNIT_TEST_WITH(an_advertised_address_reaches_the_nic, set_up, tear_down) {
  char text[INTERFACE_ADDRESS_TEXT_MAX];
  assert_int_equal(discover(NULL, "STRATUS_ADVERTISE_ADDRESS=203.0.113.7"), 0);
  const struct nic *nic = &found.devices.devices[0].nics[0];
  assert_string_equal(interface_address_text(&nic->advertised, text), "203.0.113.7");
  assert_string_equal(interface_address_text(&nic->address, text), "127.0.0.1");
  /* There is no device then, nor a profile in use. */
  discovery_free(&found);
  assert_int_equal(discover("good.profile", "STRATUS_ADVERTISE_ADDRESS=eth7=203.0.113.7"), -EINVAL);
  assert_int_equal(found.devices.count, 0);
  assert_false(found.has_profile);
  assert_int_equal(log_capture_find("names none of the interfaces in use"), 1);
}
