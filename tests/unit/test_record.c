/* SPDX-License-Identifier: Apache-2.0 */
/* record: samples of a job's own calls, and their sequence; and that recording changes no choice.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

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

/* The only file with this extension, which nobody else may read. */
static void find_file(const char *extension, char path[TREE_PATH_MAX]) {
  DIR *directory = opendir(tuner_job_tree.root);
  assert_non_null(directory);
  int found = 0;
  for (struct dirent *each; (each = readdir(directory));) {
    struct stat status;
    const char *end = strrchr(each->d_name, '.');
    if (end && strcmp(end, extension) == 0) {
      found++;
      assert_int_equal(stat(tree_path(&tuner_job_tree, each->d_name, path), &status), 0);
      assert_int_equal(status.st_mode & 0777, 0600);
    }
  }
  closedir(directory);
  assert_int_equal(found, 1);
}

static void read_samples(struct sample_file *file) {
  char path[TREE_PATH_MAX];
  struct profile_error error;
  find_file(".jsonl", path);
  assert_int_equal(sample_file_read(path, file, &error), 0);
}

static json_t *read_sequence(void) {
  char path[TREE_PATH_MAX];
  json_error_t error;
  find_file(".calls", path);
  json_t *sequence = json_load_file(path, 0, &error);
  assert_non_null(sequence);
  return sequence;
}

/* The first test: a process says only once that nothing is recorded. */
TUNER_JOB_TEST(no_directory_is_one_warning) {
  bool chosen[6];
  run_calls("/nowhere/at/all", chosen);
  run_calls("/nowhere/at/all", chosen);
  assert_int_equal(log_capture_find("STRATUS_RECORD: /nowhere/at/all/"), 1);
  assert_true(chosen[0]);
}

TUNER_JOB_TEST(calls_become_samples) {
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

static void check_call(const json_t *call, double *before_us, const char *collective,
                       json_int_t bytes) {
  assert_int_equal(json_array_size(call), 3);
  assert_true(json_real_value(json_array_get(call, 0)) >= *before_us);
  *before_us = json_real_value(json_array_get(call, 0));
  assert_string_equal(json_string_value(json_array_get(call, 1)), collective);
  assert_int_equal(json_integer_value(json_array_get(call, 2)), bytes);
}

TUNER_JOB_TEST(calls_are_in_their_order) {
  bool chosen[6];
  run_calls(tuner_job_tree.root, chosen);
  json_t *sequence = read_sequence(), *calls = json_object_get(sequence, "calls");
  assert_string_equal(json_string_value(json_object_get(sequence, "format")), "stratus-calls");
  assert_int_equal(json_integer_value(json_object_get(sequence, "version")), 1);
  assert_int_equal(json_integer_value(json_object_get(sequence, "ranks")), 32);
  assert_int_equal(json_integer_value(json_object_get(sequence, "nodes")), 4);
  assert_int_equal(json_integer_value(json_object_get(sequence, "dropped")), 0);
  assert_int_equal(json_array_size(calls), 6); /* without the one that no tuner knows */
  static const json_int_t sizes[6] = { 65536, 65536, 8, 8, 65536, 8 };
  double before_us = 1; /* the clock does not begin at 0 */
  for (size_t i = 0; i < 6; i++) {
    check_call(json_array_get(calls, i), &before_us, "allreduce", sizes[i]);
  }
  json_decref(sequence);
}

/* Also of sizes for which there are too many to sample. */
TUNER_JOB_TEST(the_newest_calls_are_kept) {
  enum { CALLS = 10000, KEPT = 8192 };
  char record[256];
  snprintf(record, sizeof record, "STRATUS_RECORD=%s", tuner_job_tree.root);
  tuner_job_set("", record);
  struct tuner *tuner = tuner_job_open();
  int channels = 0;
  for (size_t i = 0; i < CALLS; i++) {
    tuner_job_call(tuner, i % 2 ? PROFILE_ALLGATHER : PROFILE_ALLREDUCE, 8 + i, &channels);
  }
  tuner_close(tuner);
  json_t *sequence = read_sequence(), *calls = json_object_get(sequence, "calls");
  assert_int_equal(json_integer_value(json_object_get(sequence, "dropped")), CALLS - KEPT);
  assert_int_equal(json_array_size(calls), KEPT);
  double before_us = 1;
  for (size_t i = 0; i < KEPT; i++) {
    size_t call = CALLS - KEPT + i;
    check_call(json_array_get(calls, i), &before_us, call % 2 ? "allgather" : "allreduce",
               (json_int_t)(8 + call));
  }
  json_decref(sequence);
}

/* Those of another machine are told apart. */
TUNER_JOB_TEST(samples_name_the_topology) {
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

TUNER_JOB_TEST(recording_changes_no_choice) {
  bool with[6], without[6];
  run_calls(tuner_job_tree.root, with);
  run_calls("", without);
  assert_memory_equal(with, without, sizeof with);
  static const bool expected[6] = { true, true, false, false, true, false };
  assert_memory_equal(with, expected, sizeof with);
}

/* Somebody else's thing by the file's name: it neither holds up the job's end nor takes what is
 * ours. */
static void leaves_alone(const char *extension) {
  char host[256] = "host", name[300], path[TREE_PATH_MAX], target[TREE_PATH_MAX];
  struct stat found;
  bool chosen[6];
  gethostname(host, sizeof host - 1);
  snprintf(name, sizeof name, "%s.%d.%s", host, (int)getpid(), extension);
  tree_path(&tuner_job_tree, name, path);
  unlink(path); /* what the calls for the other extension left */
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
  assert_int_equal(unlink(path), 0);
  assert_true(chosen[0]);
}

TUNER_JOB_TEST(what_is_not_ours_is_left_alone) {
  leaves_alone("jsonl");
  leaves_alone("calls");
}

UNIT_MAIN(NULL, NULL)
