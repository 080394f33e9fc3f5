/* SPDX-License-Identifier: Apache-2.0 */
/* Which profile fits, which of several is taken, and where nobody looks. */
#include "common/profile_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/json_text.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct machine aws;

static int start(void **state) {
  tree_create(&test_tree);
  log_capture_start();
  machine_read("tests/data/machines/aws-p4d", &aws);
  strcpy(aws.topology, "90542e82ec6a");
  return 0;
}

static int stop(void **state) {
  char *none[] = { NULL };
  log_capture_stop();
  tree_remove(&test_tree);
  param_load(none);
  return 0;
}

/* `match`: members of that object. */
static void write_profile(const char *path, const char *id, const char *match) {
  char text[512];
  snprintf(text, sizeof text, "{'schema': 2, 'id': '%s', 'match': {%s}}", id, match);
  tree_write(&test_tree, path, "%s", json_text(text));
}

/* ---- fitting ---- */

static struct profile_fit fit_of(const char *match) {
  struct profile profile;
  struct profile_error error;
  char path[TREE_PATH_MAX];
  write_profile("fit", "a", match);
  if (profile_read(tree_path(&test_tree, "fit", path), &profile, &error) < 0) {
    fail_msg("%s: %s", match, error.text);
  }
  struct profile_fit fit = profile.fit;
  profile_free(&profile);
  return fit;
}

#define MATCH_TEST(function) UNIT_TEST_WITH(function, start, stop)

/* What a machine does not tell matches no pattern, not even `*`. */
MATCH_TEST(every_wish_counts) {
  static const struct machine unknown = { .cloud = "unknown" };
  static const struct {
    const char *match;
    int score;
  } cases[] = {
    { "", -1 },
    { "'cloud': 'aws'", 1 },
    { "'cloud': 'gcp'", -1 },
    { "'instance_type': 'p4d.24xlarge'", 1 },
    { "'instance_type': 'P4D.*'", 1 },
    { "'instance_type': 'p4d'", -1 },
    { "'instance_type': '*'", 1 },
    { "'instance_type': 'p5.*, p4?.24xlarge'", 1 },
    { "'instance_type': 'p5.* , p6.*'", -1 },
    { "'instance_type': ', ,'", -1 },
    { "'topology': '90542e82ec6a'", 3 },
    { "'topology': '0123456789ab'", -1 },
    { "'instance_type': 'p4d.24xlarge', 'topology': '0123456789ab'", -1 },
    { "'cloud': 'aws', 'instance_type': 'p4d.*'", 2 },
    { "'cloud': 'aws', 'instance_type': 'p5.*'", -1 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct profile_fit fit = fit_of(cases[i].match);
    assert_int_equal(profile_match_score(&fit, &aws), cases[i].score);
    assert_int_equal(profile_match_score(&fit, &unknown), -1);
  }
}

MATCH_TEST(releases_are_compared) {
  const struct profile_meta open = { 0 };
  const struct profile_meta from = { .nccl_min = 21901 };
  const struct profile_meta both = { .nccl_min = 21901, .nccl_max = 23099 };
  assert_true(profile_match_is_nccl_in_range(&open, 22105));
  assert_true(profile_match_is_nccl_in_range(&from, 29999));
  assert_true(profile_match_is_nccl_in_range(&from, 21901));
  assert_false(profile_match_is_nccl_in_range(&from, 21900));
  assert_true(profile_match_is_nccl_in_range(&both, 23007));
  assert_false(profile_match_is_nccl_in_range(&both, 23100));
  assert_true(profile_match_is_nccl_in_range(&both, 0));
}

/* ---- searching ---- */

/* Searches directories "1", "2", "3" of the tree; returns the id found, "" if none. */
static const char *search(void) {
  static char id[PROFILE_ID_MAX];
  static char directories[3][TREE_PATH_MAX];
  const char *list[] = { tree_path(&test_tree, "1", directories[0]),
                         tree_path(&test_tree, "2", directories[1]),
                         tree_path(&test_tree, "3", directories[2]), NULL };
  const struct profile_search where = { .directories = list };
  struct profile profile;
  struct profile_error error;
  char path[PROFILE_PATH_MAX];
  int result = profile_match_find(&where, &aws, &profile, path, &error);
  strcpy(id, profile.meta.id);
  assert_int_equal(result, id[0] ? 0 : -ENOENT);
  assert_true((result == 0) == (path[0] != '\0'));
  assert_true((result == 0) == (error.text[0] == '\0'));
  profile_free(&profile);
  return id;
}

MATCH_TEST(first_directory_with_a_fit_wins) {
  assert_string_equal(search(), "");
  write_profile("3/a.profile", "packaged", "'cloud': 'aws', 'instance_type': 'p4d.*'");
  assert_string_equal(search(), "packaged");
  write_profile("2/a.profile", "other-cloud", "'cloud': 'gcp'");
  assert_string_equal(search(), "packaged");
  write_profile("1/a.profile", "user", "'cloud': 'aws'");
  assert_string_equal(search(), "user");
}

MATCH_TEST(in_a_directory_the_most_particular_wins) {
  write_profile("1/a.profile", "cloud", "'cloud': 'aws'");
  write_profile("1/b.profile", "type", "'cloud': 'aws', 'instance_type': 'p4d.*'");
  write_profile("1/c.profile", "also-type", "'cloud': 'aws', 'instance_type': 'p4*'");
  write_profile("1/d.profile", "nothing-asked", "");
  assert_string_equal(search(), "type");
  write_profile("1/e.profile", "measured", "'topology': '90542e82ec6a'");
  assert_string_equal(search(), "measured");
}

MATCH_TEST(only_profiles_are_read) {
  write_profile("1/a.profile~", "backup", "'cloud': 'aws'");
  write_profile("1/.a.profile", "hidden", "'cloud': 'aws'");
  write_profile("1/.profile", "shell", "'cloud': 'aws'");
  write_profile("1/a.txt", "text", "'cloud': 'aws'");
  assert_string_equal(search(), "");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

MATCH_TEST(bad_file_is_passed_over_with_a_warning) {
  tree_write(&test_tree, "1/a.profile", "{\"schema\": 9}");
  write_profile("1/b.profile", "good", "'cloud': 'aws'");
  assert_string_equal(search(), "good");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_int_equal(log_capture_find("1/a.profile: schema takes 2 in this release, not 9"), 1);
}

/* A file of the tree, which STRATUS_PROFILE names. */
static int find_named(const char *file, struct profile *profile, struct profile_error *error) {
  const char *const none[] = { NULL };
  char named[TREE_PATH_MAX], path[PROFILE_PATH_MAX];
  const struct profile_search where = { .explicit_path = tree_path(&test_tree, file, named),
                                        .directories = none };
  int result = profile_match_find(&where, &aws, profile, path, error);
  assert_string_equal(path, result == 0 ? named : "");
  assert_true(result == 0 || strncmp(error->text, named, strlen(named)) == 0);
  return result;
}

/* All ranks are given the same one: refused on some of them it would hang the job. */
MATCH_TEST(a_named_profile_is_used_whether_it_fits_or_not) {
  static const struct {
    const char *match;
    int warnings; /* of this file and those before */
  } cases[] = { { "'cloud': 'aws', 'topology': '90542e82ec6a'", 0 },
                { "'topology': '0123456789ab'", 1 },
                { "'cloud': 'gcp'", 1 },
                { "", 1 } };
  struct profile profile;
  struct profile_error error;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    write_profile("mine", "mine", cases[i].match);
    assert_int_equal(find_named("mine", &profile, &error), 0);
    assert_string_equal(profile.meta.id, "mine");
    assert_int_equal(log_capture_count(LOG_LEVEL_WARN), cases[i].warnings);
    profile_free(&profile);
  }
  assert_int_equal(log_capture_find("another topology, 0123456789ab: this one's is 90542e82ec6a"),
                   1);
  assert_int_equal(find_named("not-there", &profile, &error), -ENOENT);
}

/* ---- the whole way ---- */

static struct profile_error load_error;

/* As a process on that machine does; returns the id, "" if there is none. */
static const char *load(const char *root, char *variable) {
  static char id[PROFILE_ID_MAX];
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  sysfs_process_root = root;
  param_load((char *[]){ variable, NULL });
  int result = profile_match_load(&profile, path, &load_error);
  snprintf(id, sizeof id, "%s", profile.meta.id);
  assert_int_equal(result, id[0] ? 0 : -ENOENT);
  profile_free(&profile);
  return id;
}

#define ROOT "tests/data/machines/aws-p4d"

MATCH_TEST(user_directory_comes_from_the_environment) {
  char path[TREE_PATH_MAX], variable[TREE_PATH_MAX + 64];
  write_profile("xdg/stratus/profiles/a.profile", "from-xdg", "'cloud': 'aws'");
  write_profile("home/.config/stratus/profiles/a.profile", "from-home", "'cloud': 'aws'");
  setenv("HOME", tree_path(&test_tree, "home", path), 1);
  setenv("XDG_CONFIG_HOME", tree_path(&test_tree, "xdg", path), 1);
  assert_string_equal(load(ROOT, "STRATUS_PROFILE="), "from-xdg");
  unsetenv("XDG_CONFIG_HOME");
  assert_string_equal(load(ROOT, "STRATUS_PROFILE="), "from-home");
  snprintf(variable, sizeof variable, "STRATUS_PROFILE=%s/xdg/stratus/profiles/a.profile",
           test_tree.root);
  assert_string_equal(load(ROOT, variable), "from-xdg");
}

MATCH_TEST(current_directory_is_never_searched) {
  char here[TREE_PATH_MAX], root[TREE_PATH_MAX + 64];
  assert_non_null(getcwd(here, sizeof here));
  write_profile("stratus/profiles/a.profile", "trap", "'cloud': 'aws'");
  write_profile(".config/stratus/profiles/a.profile", "trap", "'cloud': 'aws'");
  write_profile("share/stratus/profiles/a.profile", "trap", "'cloud': 'aws'");
  write_profile("a.profile", "trap", "'cloud': 'aws'");
  setenv("XDG_CONFIG_HOME", ".", 1);
  setenv("HOME", "", 1);
  assert_int_equal(chdir(test_tree.root), 0);
  snprintf(root, sizeof root, "%s/" ROOT, here);
  assert_string_equal(load(root, NULL), "");
  assert_int_equal(chdir(here), 0);
  assert_string_equal(load_error.text, "no profile fits this machine: cloud aws, instance type "
                                       "p4d.24xlarge, topology 90542e82ec6a");
}
