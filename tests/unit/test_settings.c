/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters make of connections where one depends on another. */
#include "net_plugin/setup/settings.h"

#include "net_plugin/policy/policy.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

static enum policy_compress compress_with(const char *parameters) {
  struct settings settings;
  pair_set_parameters(parameters);
  settings_get(1, &settings);
  return settings.policy.compress;
}

static int tear_down(void **state) {
  pair_set_parameters(NULL);
  return 0;
}

UNIT_TEST_WITH(compression_is_tried_unless_the_user_says_else, NULL, tear_down) {
  assert_int_equal(compress_with(NULL), POLICY_COMPRESS_AUTO);
  assert_int_equal(compress_with("STRATUS_COMPRESS=off"), POLICY_COMPRESS_OFF);
  assert_int_equal(compress_with("STRATUS_COMPRESS=on"), POLICY_COMPRESS_ON);
}

/* Lengths say something about what is in them. */
UNIT_TEST_WITH(encryption_alone_does_not_compress, NULL, tear_down) {
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on"), POLICY_COMPRESS_OFF);
  log_capture_start();
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on STRATUS_COMPRESS=atuo"), POLICY_COMPRESS_OFF);
  log_capture_stop();
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on STRATUS_COMPRESS=auto"), POLICY_COMPRESS_AUTO);
  assert_int_equal(compress_with("STRATUS_ENCRYPT=on STRATUS_COMPRESS=on"), POLICY_COMPRESS_ON);
}
