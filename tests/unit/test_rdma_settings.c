/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL_IB_*: NCCL's meaning and defaults, and what is said about bad values. */
#include "net_plugin/lane/rdma/rdma_settings.h"

#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static const char *const variables[] = {
  "NCCL_IB_HCA",     "NCCL_IB_TC",        "NCCL_IB_SL",
  "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT", "NCCL_IB_DISABLE",
};

static void set_mode(char *value) {
  char *environment[] = { value, NULL };
  param_load(environment);
}

static int set_up(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    unsetenv(variables[i]);
  }
  set_mode(NULL);
  log_capture_start();
  return 0;
}

static struct rdma_settings with(const char *name, const char *value) {
  struct rdma_settings settings;
  setenv(name, value, 1);
  rdma_settings_read(&settings);
  unsetenv(name);
  return settings;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, log_capture_tear_down)

TEST(defaults_are_nccls) {
  struct rdma_settings settings;
  rdma_settings_read(&settings);
  assert_false(settings.is_off);
  assert_false(settings.is_wanted);
  assert_int_equal(settings.hcas.count, 0);
  assert_int_equal(settings.traffic_class, -1);
  assert_int_equal(settings.service_level, -1);
  assert_int_equal(settings.timeout, 14);
  assert_int_equal(settings.retry_count, 7);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

TEST(values_are_taken) {
  assert_int_equal(with("NCCL_IB_TC", "0x6a").traffic_class, 106);
  assert_int_equal(with("NCCL_IB_SL", "5").service_level, 5);
  assert_int_equal(with("NCCL_IB_TIMEOUT", "22").timeout, 22);
  assert_int_equal(with("NCCL_IB_RETRY_CNT", "0").retry_count, 0);
  assert_int_equal(with("NCCL_IB_TC", "").traffic_class, -1); /* as if not set */
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

TEST(bad_values_are_told_and_not_taken) {
  assert_int_equal(with("NCCL_IB_TIMEOUT", "32").timeout, 14);
  assert_int_equal(log_capture_find("NCCL_IB_TIMEOUT=32 is ignored: accepted is 0..31; 14 is used"),
                   1);
  assert_int_equal(with("NCCL_IB_RETRY_CNT", "8").retry_count, 7);
  assert_int_equal(with("NCCL_IB_SL", "sl1").service_level, -1);
  assert_int_equal(with("NCCL_IB_TC", "106x").traffic_class, -1);
  assert_int_equal(with("NCCL_IB_TC", "-2").traffic_class, -1);
  assert_int_equal(with("NCCL_IB_TC", "99999999999999999999").traffic_class, -1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 6);
}

TEST(it_can_be_turned_off) {
  assert_true(with("NCCL_IB_DISABLE", "1").is_off);
  assert_string_equal(with("NCCL_IB_DISABLE", "1").off_why, "NCCL_IB_DISABLE is set");
  assert_true(with("NCCL_IB_DISABLE", "2").is_off);
  assert_false(with("NCCL_IB_DISABLE", "0").is_off);
  set_mode("STRATUS_RDMA=off");
  assert_string_equal(with("NCCL_IB_DISABLE", "0").off_why, "STRATUS_RDMA=off");
  set_mode("STRATUS_RDMA=on");
  assert_true(with("NCCL_IB_DISABLE", "0").is_wanted);
  assert_true(with("NCCL_IB_DISABLE", "1").is_off); /* NCCL's own win */
}

UNIT_MAIN(NULL, NULL)
