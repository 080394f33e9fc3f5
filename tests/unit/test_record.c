/* SPDX-License-Identifier: Apache-2.0 */
/* record: samples of a job's own calls; and that recording changes no choice. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/log_capture.h"
#include "tests/lib/tuner_job.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/model/sample_file.h"

/* The profile has ring for 64K and more. */
static void run_calls(const char *directory, bool chosen[6]) {
  tree_write(&tuner_job_tree, "p.profile",
             "schema = 1\n[meta]\nid = p\n[table allreduce nodes=4 ppn=8]\n64K 1M ring simple 4\n");
  char record[256];
  snprintf(record, sizeof record, "STRATUS_RECORD=%s", directory);
  tuner_job_set("p.profile", record);
  struct tuner *tuner = tuner_job_open();
  static const size_t sizes[6] = { 65536, 65536, 8, 8, 65536, 8 };
  int channels = 0;
  for (int i = 0; i < 6; i++) {
    chosen[i] = tuner_job_call(tuner, PROFILE_ALLREDUCE, sizes[i], &channels);
  }
  /* Not one of a tuner's: ends the time of the call before. */
  tuner_job_call(tuner, 77, 8, &channels);
  tuner_close(tuner);
}

/* Reads the only file that ends in jsonl. */
static void read_samples(struct sample_file *file) {
  DIR *directory = opendir(tuner_job_tree.root);
  assert_non_null(directory);
  struct profile_error error;
  int found = 0;
  for (struct dirent *each; (each = readdir(directory));) {
    char path[TREE_PATH_MAX];
    struct stat status;
    if (strstr(each->d_name, ".jsonl")) {
      found++;
      assert_int_equal(
          sample_file_read(tree_path(&tuner_job_tree, each->d_name, path), file, &error), 0);
      assert_int_equal(stat(path, &status), 0);
      assert_int_equal(status.st_mode & 0777, 0600);
    }
  }
  closedir(directory);
  assert_int_equal(found, 1);
}

/* The first test: a process says only once that nothing is recorded. */
static void no_directory_is_one_warning(void **state) {
  (void)state;
  bool chosen[6];
  run_calls("/nowhere/at/all", chosen);
  run_calls("/nowhere/at/all", chosen);
  assert_int_equal(log_capture_find("STRATUS_RECORD: /nowhere/at/all/"), 1);
  assert_true(chosen[0]);
}

static void calls_become_samples(void **state) {
  (void)state;
  bool chosen[6];
  run_calls(tuner_job_tree.root, chosen);
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
  assert_string_equal(small->topology, "");
  assert_true(small->median_us > 0 && small->p99_us >= small->median_us);
  sample_file_free(&file);
}

/* Those of another machine are told apart. */
static void samples_name_the_topology(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "cp -a tests/data/sysfs/gcp/sys %s", tuner_job_tree.root);
  assert_int_equal(system(command), 0);
  bool chosen[6];
  run_calls(tuner_job_tree.root, chosen);
  struct sample_file file = { 0 };
  read_samples(&file);
  assert_int_equal(file.count, 2);
  assert_string_equal(file.samples[0].topology, "6b85dabaffe0");
  assert_string_equal(file.samples[1].topology, "6b85dabaffe0");
  sample_file_free(&file);
}

static void recording_changes_no_choice(void **state) {
  (void)state;
  bool with[6], without[6];
  run_calls(tuner_job_tree.root, with);
  run_calls("", without);
  assert_memory_equal(with, without, sizeof with);
  static const bool expected[6] = { true, true, false, false, true, false };
  assert_memory_equal(with, expected, sizeof with);
}

/* Somebody else's thing by the file's name: it neither holds up the job's end nor takes samples. */
static void what_is_not_ours_is_left_alone(void **state) {
  (void)state;
  char host[256] = "host", name[300], path[TREE_PATH_MAX], target[TREE_PATH_MAX];
  struct stat found;
  bool chosen[6];
  gethostname(host, sizeof host - 1);
  snprintf(name, sizeof name, "%s.%d.jsonl", host, (int)getpid());
  tree_path(&tuner_job_tree, name, path);
  assert_int_equal(mkfifo(path, 0600), 0);
  int reader = open(path, O_RDONLY | O_NONBLOCK); /* a pipe that somebody reads can be opened */
  assert_true(reader >= 0);
  run_calls(tuner_job_tree.root, chosen);
  char byte;
  assert_true(read(reader, &byte, 1) <= 0);
  close(reader);
  assert_int_equal(unlink(path), 0);
  tree_write(&tuner_job_tree, "victim", "untouched");
  assert_int_equal(link(tree_path(&tuner_job_tree, "victim", target), path), 0);
  run_calls(tuner_job_tree.root, chosen);
  assert_int_equal(stat(target, &found), 0);
  assert_int_equal(found.st_size, 9);
  assert_true(chosen[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TUNER_JOB_TEST(no_directory_is_one_warning),    TUNER_JOB_TEST(calls_become_samples),
    TUNER_JOB_TEST(samples_name_the_topology),      TUNER_JOB_TEST(recording_changes_no_choice),
    TUNER_JOB_TEST(what_is_not_ours_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
