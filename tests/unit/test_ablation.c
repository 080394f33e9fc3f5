/* SPDX-License-Identifier: Apache-2.0 */
/* Which heuristics STRATUS_ABLATE switches off; unknown ones are an error. */
#include "common/ablation.h"

#include <errno.h>

#include "common/param.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static int load(const char *variable) {
  char *environment[] = { (char *)(uintptr_t)variable, NULL };
  param_load(environment);
  return ablation_load();
}

LOG_CAPTURE_TEST(all_heuristics_are_on_by_default) {
  assert_int_equal(load(NULL), 0);
  assert_true(ablation_mask() == 0);
  assert_false(ablation_off(ABLATION_COALESCE));
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

LOG_CAPTURE_TEST(named_ones_are_off_and_it_is_said) {
  assert_int_equal(load("STRATUS_ABLATE=coalesce,lowat"), 0);
  assert_true(ablation_off(ABLATION_COALESCE));
  assert_true(ablation_off(ABLATION_LOWAT));
  assert_false(ablation_off(ABLATION_WARM));
  assert_int_equal(log_capture_find("coalesce,lowat"), 1);
  assert_int_equal(load(NULL), 0);
  assert_true(ablation_mask() == 0);
}

LOG_CAPTURE_TEST(an_unknown_one_is_an_error_with_what_is_accepted) {
  assert_int_equal(load("STRATUS_ABLATE=coalesce,coal"), -EINVAL);
  assert_true(ablation_mask() == 0);
  assert_int_equal(
      log_capture_find("unknown heuristic 'coal'; accepted, separated by commas: coalesce"), 1);
  assert_int_equal(load("STRATUS_ABLATE=coalesce,,warm"), -EINVAL);
}

UNIT_MAIN(NULL, NULL)
