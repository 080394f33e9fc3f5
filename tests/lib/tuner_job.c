/* SPDX-License-Identifier: Apache-2.0 */
/* See tuner_job.h. */
#include "tests/lib/tuner_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

enum { ALGOS = 7, PROTOS = 3 };

struct tree tuner_job_tree;
const struct tuner_host tuner_job_host = { .abi_version = 5, .nccl_version = 22907 };
const struct tuner_shape tuner_job_shape = { .ranks = 32, .nodes = 4 };

int tuner_job_set_up(void **state) {
  (void)state;
  unsetenv("NCCL_ALGO");
  tree_create(&tuner_job_tree);
  log_capture_start();
  return 0;
}

int tuner_job_tear_down(void **state) {
  (void)state;
  log_capture_stop();
  tree_remove(&tuner_job_tree);
  return 0;
}

void tuner_job_set(const char *profile_file, const char *other) {
  static char profile[256], extra[256];
  snprintf(profile, sizeof profile, "STRATUS_PROFILE=%s/%s", tuner_job_tree.root, profile_file);
  snprintf(extra, sizeof extra, "%s", other);
  char *environment[] = { extra, profile_file[0] ? profile : NULL, NULL };
  param_load(environment);
  sysfs_process_root = tuner_job_tree.root;
  setenv("XDG_CONFIG_HOME", tuner_job_tree.root, 1);
}

struct tuner *tuner_job_open_as(struct tuner_host host, struct tuner_shape shape) {
  struct tuner *tuner = tuner_open(host, shape);
  assert_non_null(tuner);
  return tuner;
}

struct tuner *tuner_job_open(void) {
  return tuner_job_open_as(tuner_job_host, tuner_job_shape);
}

bool tuner_job_call(struct tuner *tuner, int coll, size_t bytes, int *channels) {
  float us[ALGOS][PROTOS];
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    us[cell / PROTOS][cell % PROTOS] = -1.0f;
  }
  us[PROFILE_TREE][PROFILE_SIMPLE] = 10.0f;
  us[PROFILE_RING][PROFILE_SIMPLE] = 20.0f;
  struct decide_costs costs = { .us = &us[0][0], .algos = ALGOS, .protos = PROTOS };
  tuner_choose_by_costs(tuner, coll, bytes, costs, channels);
  assert_true(us[PROFILE_TREE][PROFILE_SIMPLE] == 10.0f);
  return us[PROFILE_RING][PROFILE_SIMPLE] == 0.0f;
}
