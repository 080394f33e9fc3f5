/* SPDX-License-Identifier: Apache-2.0 */
/* The instance type: the user's word, and inference. */

#include "common/machine.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static struct machine machine;

static void identify(const char *root, const char *word) {
  sysfs_process_root = root;
  param_load((char *[]){ (char *)(uintptr_t)word, NULL });
  machine_identify(&machine);
}

static int stop(void **state) {
  (void)state;
  log_capture_stop();
  param_load((char *[]){ NULL });
  return 0;
}

UNIT_TEST_WITH(the_users_word_comes_first, log_capture_set_up, stop) {
  identify("tests/data/machines/aws-p4d", "STRATUS_INSTANCE_TYPE=p5.48xlarge");
  assert_int_equal(machine.cloud, MACHINE_CLOUD_AWS);
  assert_string_equal(machine.instance_type, "p5.48xlarge");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_FROM_USER);
  identify("tests/data/machines/aws-p4d", "STRATUS_INSTANCE_TYPE=GCP:a3-megagpu-8g");
  assert_int_equal(machine.cloud, MACHINE_CLOUD_GCP);
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  identify("tests/data/machines/aws-p4d", "STRATUS_INSTANCE_TYPE=ibm:x");
  assert_string_equal(machine.instance_type, "p4d.24xlarge");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_FROM_DMI);
  assert_int_equal(log_capture_find("before the colon goes aws, gcp"), 1);
}

UNIT_TEST_WITH(gpus_and_nics_leave_one_possibility, log_capture_set_up, stop) {
  identify("tests/data/machines/gcp-a3-mega", NULL);
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_INFERRED);
  assert_string_equal(machine_type_origin_name(machine.type_origin), "GPUs and cloud");
  /* the same GPUs in nobody's cloud say nothing */
  identify("tests/data/machines/baremetal-roce", NULL);
  assert_string_equal(machine.instance_type, "");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_UNKNOWN);
}

UNIT_MAIN(NULL, NULL)
