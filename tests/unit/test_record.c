/* SPDX-License-Identifier: Apache-2.0 */
/* record: samples of a job's own calls; and that recording changes no choice. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/param.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/plugin/tuner.h"

enum { ALGOS = 7, PROTOS = 3 };

static struct tree tree;

static int set_up(void **state) {
  (void)state;
  tree_create(&tree);
  log_capture_start();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  log_capture_stop();
  tree_remove(&tree);
  return 0;
}

static struct tuner *open_tuner(const char *directory) {
  static char texts[4][256];
  snprintf(texts[0], sizeof texts[0], "STRATUS_RECORD=%s", directory);
  snprintf(texts[1], sizeof texts[1], "STRATUS_PROFILE=%s/p.profile", tree.root);
  snprintf(texts[2], sizeof texts[2], "STRATUS_SYSFS_ROOT=%s", tree.root);
  char *environment[] = { texts[0], texts[1], texts[2], NULL };
  param_load(environment);
  struct tuner *tuner = NULL;
  assert_int_equal(
      tuner_open((struct tuner_host){ 5, 22907 }, (struct tuner_shape){ 32, 4, false }, &tuner), 0);
  return tuner;
}

/* NCCL prefers tree; the profile has ring for 64K and more. True if ring was made the cheapest. */
static bool call(struct tuner *tuner, int coll, size_t bytes) {
  float us[ALGOS][PROTOS];
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    us[cell / PROTOS][cell % PROTOS] = -1.0f;
  }
  us[PROFILE_TREE][PROFILE_LL] = 10.0f;
  us[PROFILE_RING][PROFILE_SIMPLE] = 20.0f;
  int channels = 0;
  tuner_choose_by_costs(tuner, coll, bytes, (struct decide_costs){ &us[0][0], ALGOS, PROTOS },
                        &channels);
  return us[PROFILE_RING][PROFILE_SIMPLE] == 0.0f;
}

static void run_calls(const char *directory, bool chosen[6]) {
  tree_write(&tree, "p.profile",
             "schema = 1\n[meta]\nid = p\n[table allreduce nodes=4 ppn=8]\n64K 1M ring simple 4\n");
  struct tuner *tuner = open_tuner(directory);
  static const size_t sizes[6] = { 65536, 65536, 8, 8, 65536, 8 };
  for (int i = 0; i < 6; i++) {
    chosen[i] = call(tuner, PROFILE_ALLREDUCE, sizes[i]);
  }
  call(tuner, 77, 8); /* not one of a tuner's: ends the time of the call before */
  tuner_close(tuner);
}

/* Reads the only file that ends in jsonl. */
static void read_samples(struct sample_file *file) {
  DIR *directory = opendir(tree.root);
  assert_non_null(directory);
  struct profile_error error;
  int found = 0;
  for (struct dirent *each; (each = readdir(directory));) {
    char path[TREE_PATH_MAX];
    struct stat status;
    if (strstr(each->d_name, ".jsonl")) {
      found++;
      assert_int_equal(sample_file_read(tree_path(&tree, each->d_name, path), file, &error), 0);
      assert_int_equal(stat(path, &status), 0);
      assert_int_equal(status.st_mode & 0777, 0600);
    }
  }
  closedir(directory);
  assert_int_equal(found, 1);
}

static void calls_become_samples(void **state) {
  (void)state;
  bool chosen[6];
  run_calls(tree.root, chosen);
  struct sample_file file = { 0 };
  read_samples(&file);
  assert_int_equal(file.count, 2);
  const struct sample *large = &file.samples[0], *small = &file.samples[1];
  assert_int_equal(large->bytes, 65536);
  assert_int_equal(large->n, 3);
  assert_false(large->is_default);
  assert_int_equal(large->algorithm, PROFILE_RING);
  assert_int_equal(large->channels, 4);
  assert_int_equal(large->nodes, 4);
  assert_int_equal(large->ppn, 8);
  assert_int_equal(small->n, 3);
  assert_true(small->is_default);
  assert_int_equal(small->algorithm, PROFILE_TREE);
  assert_string_equal(small->env, "recorded");
  assert_true(small->median_us > 0 && small->p99_us >= small->median_us);
  sample_file_free(&file);
}

static void recording_changes_no_choice(void **state) {
  (void)state;
  bool with[6], without[6];
  run_calls(tree.root, with);
  run_calls("", without);
  assert_memory_equal(with, without, sizeof with);
  static const bool expected[6] = { true, true, false, false, true, false };
  assert_memory_equal(with, expected, sizeof with);
}

static void no_directory_is_one_warning(void **state) {
  (void)state;
  bool chosen[6];
  run_calls("/nowhere/at/all", chosen);
  run_calls("/nowhere/at/all", chosen);
  assert_int_equal(log_capture_find("STRATUS_RECORD: /nowhere/at/all/"), 1);
  assert_true(chosen[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(calls_become_samples, set_up, tear_down),
    cmocka_unit_test_setup_teardown(recording_changes_no_choice, set_up, tear_down),
    cmocka_unit_test_setup_teardown(no_directory_is_one_warning, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
