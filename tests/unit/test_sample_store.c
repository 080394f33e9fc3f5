/* SPDX-License-Identifier: Apache-2.0 */
/* store: what is added is there after a flush, behind whatever end the file had. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/tools/calibrate/sample_store.h"

static struct tree tree;
static char path[TREE_PATH_MAX];

static int set_up(void **state) {
  (void)state;
  tree_create(&tree);
  tree_path(&tree, "s.jsonl", path);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tree_remove(&tree);
  return 0;
}

static const struct sample sample = { .nodes = 2, .ppn = 1, .n = 3, .median_us = 5 };

/* How many samples the file has, all of it being samples. */
static size_t count_samples(void) {
  struct sample_file file = { 0 };
  struct profile_error error;
  if (sample_file_read(path, &file, &error) < 0) {
    fail_msg("%s", error.text);
  }
  size_t count = file.count;
  sample_file_free(&file);
  return count;
}

UNIT_TEST_WITH(samples_come_with_a_flush, set_up, tear_down) {
  struct sample_store store, other;
  assert_int_equal(sample_store_open(&store, path), 0);
  assert_int_equal(sample_store_add(&store, &sample), 0);
  assert_int_equal(sample_store_add(&store, &sample), 0);
  assert_int_equal(store.samples.count, 2);
  assert_int_equal(count_samples(), 0);
  assert_int_equal(sample_store_flush(&store), 0);
  assert_int_equal(count_samples(), 2);
  assert_int_equal(sample_store_open(&other, path), 0); /* at the same time */
  assert_int_equal(other.samples.count, 2);
  assert_int_equal(sample_store_add(&store, &sample), 0);
  assert_int_equal(sample_store_add(&other, &sample), 0);
  assert_int_equal(sample_store_flush(&other), 0);
  assert_int_equal(sample_store_flush(&store), 0);
  assert_int_equal(sample_store_flush(&store), 0);
  assert_int_equal(count_samples(), 4);
  sample_store_close(&store);
  sample_store_close(&other);
}

/* Wherever a writer was stopped, the next one's samples can be read. */
UNIT_TEST_WITH(an_unfinished_line_is_cut_off, set_up, tear_down) {
  char line[SAMPLE_LINE_MAX];
  size_t length = sample_format(&sample, line, sizeof line);
  assert_true(length > 100);
  for (size_t kept = 1; kept < length; kept++) {
    tree_write(&tree, "s.jsonl", "%s%.*s", line, (int)kept, line);
    size_t whole = kept == length - 1 ? 2 : 1; /* but for its newline */
    struct sample_store store;
    assert_int_equal(sample_store_open(&store, path), 0);
    assert_int_equal(store.samples.count, whole);
    assert_int_equal(sample_store_add(&store, &sample), 0);
    assert_int_equal(sample_store_flush(&store), 0);
    sample_store_close(&store);
    assert_int_equal(count_samples(), whole + 1);
  }
}

UNIT_TEST_WITH(other_files_stay_as_they_are, set_up, tear_down) {
  static const char *const texts[] = { "#!/bin/sh\nexit 0\n", "x", "{ \"a\": [ 1,",
                                       "{\"schema\":1}\n" };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tree_write(&tree, "s.jsonl", "%s", texts[i]);
    struct sample_store store;
    struct stat status;
    assert_int_not_equal(sample_store_open(&store, path), 0);
    sample_store_close(&store);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, strlen(texts[i]));
  }
  struct sample_store store;
  assert_int_not_equal(sample_store_open(&store, "/nowhere/s.jsonl"), 0);
  sample_store_close(&store);
}

UNIT_MAIN(NULL, NULL)
