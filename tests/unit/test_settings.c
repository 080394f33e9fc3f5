/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters make of connections where one depends on another. */
#include "net_plugin/setup/settings.h"

#include "common/param.h"
#include "net_plugin/policy/policy.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static enum policy_compress compress_with(char *first, char *second) {
  struct settings settings;
  param_load((char *[]){ first, second, NULL });
  settings_get(1, &settings);
  return settings.policy.compress;
}

static int tear_down(void **state) {
  (void)state;
  param_load((char *[]){ NULL });
  return 0;
}

static void compression_is_tried_unless_the_user_says_else(void **state) {
  (void)state;
  assert_int_equal(compress_with(NULL, NULL), POLICY_COMPRESS_AUTO);
  assert_int_equal(compress_with("STRATUS_COMPRESS=off", NULL), POLICY_COMPRESS_OFF);
  assert_int_equal(compress_with("STRATUS_COMPRESS=on", NULL), POLICY_COMPRESS_ON);
}

/* Lengths say something about what is in them. */
static void encryption_alone_does_not_compress(void **state) {
  (void)state;
  static char encrypts[] = "STRATUS_ENCRYPT=on";
  assert_int_equal(compress_with(encrypts, NULL), POLICY_COMPRESS_OFF);
  log_capture_start();
  assert_int_equal(compress_with(encrypts, "STRATUS_COMPRESS=atuo"), POLICY_COMPRESS_OFF);
  log_capture_stop();
  assert_int_equal(compress_with(encrypts, "STRATUS_COMPRESS=auto"), POLICY_COMPRESS_AUTO);
  assert_int_equal(compress_with(encrypts, "STRATUS_COMPRESS=on"), POLICY_COMPRESS_ON);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(compression_is_tried_unless_the_user_says_else, tear_down),
    cmocka_unit_test_teardown(encryption_alone_does_not_compress, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
