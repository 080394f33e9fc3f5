/* SPDX-License-Identifier: Apache-2.0 */
/* samples: what is written is read again; what is no sample is named by file and line. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/lib/json_text.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/model/sample_file.h"

static const struct sample complete = {
  .collective = PROFILE_REDUCESCATTER,
  .bytes = 5000000000,
  .nodes = 4,
  .ppn = 8,
  .cell = { PROFILE_PAT, PROFILE_LL128, 8 },
  .is_default = true,
  .n = 20,
  .median_us = 812.5,
  .mad_us = 9.125,
  .time = 1785578102,
  .nccl = 23004,
  .run = "1785578100-3f2a",
  .topology = "0d5fc02a91e7",
};

/* Read last. */
static struct sample_file file;
static struct profile_error error;

static const char *here(void) {
  static char path[TREE_PATH_MAX];
  return tree_path(&test_tree, "samples.jsonl", path);
}

static int read_text(const char *text) {
  tree_write(&test_tree, "samples.jsonl", "%s", text);
  file = (struct sample_file){ 0 };
  return sample_file_read(here(), &file, &error);
}

UNIT_TEST(what_is_written_is_read_again) {
  char text[2 * SAMPLE_LINE_MAX];
  size_t length = sample_format(&complete, text, SAMPLE_LINE_MAX);
  assert_true(length > 0 && text[length - 1] == '\n');
  struct sample other;
  memcpy(&other, &complete,
         sizeof other); /* what is between the fields, too: it is compared below */
  other.collective = PROFILE_BROADCAST;
  other.is_default = false;
  memset(other.run, 0, sizeof other.run);
  assert_true(sample_format(&other, text + length, SAMPLE_LINE_MAX) > 0);

  assert_int_equal(read_text(text), 0);
  assert_int_equal(file.count, 2);
  char again[2 * SAMPLE_LINE_MAX];
  length = sample_format(&file.samples[0], again, SAMPLE_LINE_MAX);
  assert_true(sample_format(&file.samples[1], again + length, SAMPLE_LINE_MAX) > 0);
  assert_string_equal(text, again);
  assert_int_equal(file.samples[0].bytes, complete.bytes);
  assert_true(file.samples[0].is_default && !file.samples[1].is_default);
  sample_file_free(&file);
}

UNIT_TEST(what_does_not_fit_is_not_written) {
  char text[SAMPLE_LINE_MAX];
  size_t length = sample_format(&complete, text, sizeof text);
  assert_int_equal(sample_format(&complete, text, length), 0);
  assert_int_equal(sample_format(&complete, text, length + 1), length);
  struct sample bad = complete;
  strcpy(bad.run, "a \"b\"");
  assert_int_equal(sample_format(&bad, text, sizeof text), 0);
  bad = complete;
  bad.median_us = NAN;
  assert_int_equal(sample_format(&bad, text, sizeof text), 0);
}

#define SAMPLE(schema, coll)                                                                       \
  "'schema':" schema ",'coll':'" coll "','bytes':8,'nodes':2,'ppn':1,'algo':'ring','proto':'ll',"  \
  "'n':5,'median_us':3.5"
#define NEEDED SAMPLE("1", "allreduce")

UNIT_TEST(few_keys_are_needed_and_others_ignored) {
  assert_int_equal(read_text(json_text("\n{" NEEDED ",'later':[1]}\n  \n{" NEEDED "}")), 0);
  assert_int_equal(file.count, 2);
  assert_int_equal(file.samples[1].bytes, 8);
  assert_int_equal(file.samples[1].mad_us, 0);
  assert_false(file.samples[1].is_default);
  sample_file_free(&file);
}

/* A disk that takes a part of it. */
UNIT_TEST(what_has_no_room_is_told) {
  struct rlimit files, small;
  assert_int_equal(read_text(""), 0);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &files), 0);
  small = (struct rlimit){ .rlim_cur = 100, .rlim_max = files.rlim_max };
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  errno = 0;
  int result = sample_file_append(here(), &complete, 1);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &files), 0);
  assert_int_equal(result, -ENOSPC);
  assert_int_equal(sample_file_mend(here()), 0);
  assert_int_equal(sample_file_append(here(), &complete, 1), 0);
  assert_int_equal(sample_file_read(here(), &file, &error), 0);
  assert_int_equal(file.count, 1);
  sample_file_free(&file);
}

UNIT_TEST(an_unfinished_last_line_is_passed_over) {
  assert_int_equal(read_text(json_text("{" NEEDED "}\n{'schema':1,'coll':'allr")), 0);
  assert_int_equal(file.count, 1);
  sample_file_free(&file);
}

UNIT_TEST(what_is_no_sample_is_named) {
  static const struct {
    const char *line;
    const char *says;
  } cases[] = {
    { "nonsense\n", "is no JSON object" },
    { "[1]\n", "is no sample: Expected object" },
    { "{}\n", "is no sample: Object item not found: schema" },
    { "{" SAMPLE("2", "allreduce") "}\n", "\"schema\" must be a whole number from 1 to 1" },
    { "{" NEEDED ",'channels':65}\n", "\"channels\" must be a whole number from 0 to 64" },
    { "{" NEEDED ",'default':1}\n", "Expected true or false" },
    { "{" NEEDED ",'mad_us':-1}\n", "mad_us not less" },
    { "{" NEEDED ",'run':'a b'}\n", "run consists of letters" },
    { "{" NEEDED ",'topology':'a100'}\n", "\"topology\" must be 12 digits" },
    { "{" NEEDED ",'n':5}\n", "duplicate" },
    { "{" SAMPLE("1", "alltoall") "}\n", "\"coll\" is none of broadcast|" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[1024];
    snprintf(text, sizeof text, "{" NEEDED "}\n%s", cases[i].line);
    assert_int_equal(read_text(json_text(text)), -EINVAL);
    assert_null(file.samples);
    if (!strstr(error.text, "samples.jsonl:2: ") || !strstr(error.text, cases[i].says)) {
      fail_msg("%s does not say %s", error.text, cases[i].says);
    }
  }
}

UNIT_TEST(a_lost_file_is_named) {
  file = (struct sample_file){ 0 };
  assert_int_equal(sample_file_read("/nowhere/samples.jsonl", &file, &error), -ENOENT);
  assert_non_null(strstr(error.text, "cannot be read"));
}

/* ---- a campaign's file ---- */

/* How many samples the file has, all of it being samples. */
static size_t count_samples(void) {
  file = (struct sample_file){ 0 };
  if (sample_file_read(here(), &file, &error) < 0) {
    fail_msg("%s", error.text);
  }
  size_t count = file.count;
  sample_file_free(&file);
  return count;
}

UNIT_TEST(samples_are_appended) {
  const struct sample two[] = { complete, complete };
  tree_write(&test_tree, "samples.jsonl", "\n");
  assert_int_equal(sample_file_mend(here()), 0);
  assert_int_equal(sample_file_append(here(), two, 2), 0);
  assert_int_equal(sample_file_append(here(), two, 0), 0);
  assert_int_equal(sample_file_mend(here()), 0);
  assert_int_equal(sample_file_append(here(), two, 1), 0);
  assert_int_equal(count_samples(), 3);
  assert_int_equal(sample_file_mend("/nowhere/s.jsonl"), -ENOENT);
  assert_int_equal(sample_file_append("/nowhere/s.jsonl", two, 1), -ENOENT);
}

/* Wherever a writer was stopped, the next one's samples can be read. */
UNIT_TEST(an_unfinished_line_is_cut_off) {
  char line[SAMPLE_LINE_MAX];
  size_t length = sample_format(&complete, line, sizeof line);
  assert_true(length > 100);
  for (size_t kept = 1; kept < length; kept++) {
    tree_write(&test_tree, "samples.jsonl", "%s%.*s", line, (int)kept, line);
    size_t whole = kept == length - 1 ? 2 : 1; /* but for its newline */
    assert_int_equal(count_samples(), whole);
    assert_int_equal(sample_file_mend(here()), 0);
    assert_int_equal(sample_file_append(here(), &complete, 1), 0);
    assert_int_equal(count_samples(), whole + 1);
  }
}

UNIT_TEST(other_files_stay_as_they_are) {
  static const char *const texts[] = { "#!/bin/sh\nexit 0", "x", "{ \"a\": [ 1," };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct stat status;
    tree_write(&test_tree, "samples.jsonl", "%s", texts[i]);
    assert_int_equal(sample_file_mend(here()), -EINVAL);
    assert_int_equal(stat(here(), &status), 0);
    assert_int_equal(status.st_size, strlen(texts[i]));
  }
}

UNIT_MAIN(test_tree_create, test_tree_remove)
