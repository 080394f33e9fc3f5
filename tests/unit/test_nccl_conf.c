/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's configuration files, as each release reads them, and who has set a variable. */
#include "common/nccl_conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static char home[TREE_PATH_MAX], passwd_home[TREE_PATH_MAX], named[TREE_PATH_MAX],
    system_file[TREE_PATH_MAX];
static int release_is;
static unsigned asked;

static int release(void) {
  asked++;
  return release_is;
}

static int begin(void **state) {
  static const char *const variables[] = { "NCCL_A", "NCCL_B", "STRATUS_C", "LD_NONE" };
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    unsetenv(variables[i]);
  }
  test_tree_create(state);
  tree_path(&test_tree, "home", home);
  tree_path(&test_tree, "passwd", passwd_home);
  tree_path(&test_tree, "named.conf", named);
  tree_path(&test_tree, "etc.conf", system_file);
  release_is = 22907;
  asked = 0;
  return 0;
}

static void load(bool is_named) {
  const struct nccl_conf_places places = { .named = is_named ? named : NULL,
                                           .home = home,
                                           .passwd_home = passwd_home,
                                           .system_file = system_file };
  assert_int_equal(nccl_conf_load(&places, release), 0);
}

/* The value, or "-"; `line` 0: not from a file. */
static void assert_setting(const char *name, const char *value, const char *file, unsigned line) {
  const struct nccl_conf_setting setting = nccl_conf_find(name);
  assert_string_equal(setting.value ? setting.value : "-", value);
  assert_string_equal(setting.file ? setting.file : "-", file ? file : "-");
  assert_int_equal(setting.line, line);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, test_tree_remove)

TEST(a_value_is_all_behind_the_first_equals_sign) {
  static const char *const values[] = { "stratus",        "stratus ",      "\tx",
                                        "\"eth0\"",       "'eth0'",        "a=b",
                                        "x # no comment", "AWS Libfabric", "" };
  static const char *const others[] = {
    "NCCL_A =x", " NCCL_A=x", "export NCCL_A=x", "\xef\xbb\xbfNCCL_A=x", "#NCCL_A=x", "NCCL_A",
    "NCCL_A x",  "=x",        "nccl_a=x"
  };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    tree_write(&test_tree, "etc.conf", "\nNCCL_A=%s", values[i]);
    load(false);
    assert_setting("NCCL_A", values[i], system_file, 2);
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    tree_write(&test_tree, "etc.conf", "\n%s", others[i]);
    load(false);
    assert_setting("NCCL_A", "-", NULL, 0);
  }
  assert_int_equal(asked, 0); /* all releases agree on these */
}

TEST(a_carriage_return_counts_before_2_30_3) {
  static const struct {
    int release;
    const char *value;
  } cases[] = { { 21903, "stratus\r" },
                { 22907, "stratus\r" },
                { 0, "stratus\r" },
                { 23003, "stratus" },
                { 23007, "stratus" } };
  tree_write(&test_tree, "etc.conf", "NCCL_A=stratus\r\nNCCL_B=1\r\r\n\r\n#x\r\n");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    release_is = cases[i].release;
    load(false);
    assert_setting("NCCL_A", cases[i].value, system_file, 1);
    assert_setting("NCCL_B", cases[i].release >= 23003 ? "1\r" : "1\r\r", system_file, 2);
    assert_int_equal(nccl_conf_line_count(), 2);
  }
}

TEST(the_first_who_says_it_counts) {
  tree_write(&test_tree, "passwd/.nccl.conf", "NCCL_A=user\nNCCL_A=again\n");
  tree_write(&test_tree, "etc.conf", "NCCL_A=system\nNCCL_B=system\nSTRATUS_C=system\n");
  char own[TREE_PATH_MAX];
  tree_path(&test_tree, "passwd/.nccl.conf", own);
  setenv("STRATUS_C", "", 1); /* an empty variable is one */
  load(false);
  assert_setting("NCCL_A", "user", own, 1);
  assert_setting("NCCL_B", "system", system_file, 2);
  assert_setting("STRATUS_C", "", NULL, 0);
  assert_int_equal(nccl_conf_line_count(), 5);
  assert_false(nccl_conf_line(1)->counts);
  assert_false(nccl_conf_line(2)->counts);
  assert_true(nccl_conf_line(3)->counts);
  assert_false(nccl_conf_line(4)->counts);
}

/* Which file is the user's. */
TEST(releases_look_in_their_own_places) {
  static const struct {
    int release;
    bool is_named;
    const char *value;
  } cases[] = {
    { 21903, false, "passwd" }, { 22203, true, "passwd" },  { 22304, true, "named" },
    { 22907, true, "named" },   { 22907, false, "passwd" }, { 23003, false, "home" },
    { 23003, true, "named" },   { 0, true, "named" },       { 0, false, "passwd" },
  };
  tree_write(&test_tree, "home/.nccl.conf", "NCCL_A=home\n");
  tree_write(&test_tree, "passwd/.nccl.conf", "NCCL_A=passwd\n");
  tree_write(&test_tree, "named.conf", "NCCL_A=named\n");
  tree_write(&test_tree, "etc.conf", "NCCL_A=system\nNCCL_B=system\n");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    release_is = cases[i].release;
    load(cases[i].is_named);
    assert_string_equal(nccl_conf_find("NCCL_A").value, cases[i].value);
    assert_string_equal(nccl_conf_find("NCCL_B").value, "system");
  }
}

TEST(the_release_is_not_asked_without_need) {
  load(true); /* no file at all */
  tree_write(&test_tree, "etc.conf", "NCCL_A=1\n");
  load(true); /* what NCCL_CONF_FILE names is not there, and ~/.nccl.conf neither */
  assert_int_equal(asked, 0);
  assert_setting("NCCL_A", "1", system_file, 1);
}

TEST(what_is_no_file_sets_nothing) {
  tree_make_directory(&test_tree, "etc.conf");
  assert_int_equal(mkfifo(named, 0600), 0); /* a tool that read it would take it from the job */
  load(true);
  assert_int_equal(nccl_conf_line_count(), 0);
}

TEST(long_lines_are_cut_as_nccl_cuts_them) {
  static char text[6000];
  memset(text, 'x', sizeof text - 1);
  memcpy(text, "NCCL_A=", 7);
  tree_write(&test_tree, "etc.conf", "%s\nSTRATUS_C=1\n", text);
  load(false);
  assert_int_equal(strlen(nccl_conf_find("NCCL_A").value), 1023);
  assert_setting("STRATUS_C", "1", system_file, 2);
}

/* The only test of the real places: what it finds there depends on the machine. */
TEST(what_is_applied_is_withdrawn) {
  tree_write(&test_tree, "named.conf", "NCCL_A=file\nNCCL_B=file\nLD_NONE=file\n");
  setenv("NCCL_CONF_FILE", named, 1);
  setenv("NCCL_B", "mine", 1);
  assert_int_equal(nccl_conf_apply(release), 0);
  assert_string_equal(getenv("NCCL_A"), "file");
  assert_string_equal(getenv("NCCL_B"), "mine");
  assert_null(getenv("LD_NONE"));
  assert_setting("NCCL_A", "file", named, 1);
  assert_setting("NCCL_B", "mine", NULL, 0);
  nccl_conf_withdraw();
  assert_null(getenv("NCCL_A"));
  assert_string_equal(getenv("NCCL_B"), "mine");
  assert_setting("NCCL_A", "file", named, 1);
  unsetenv("NCCL_CONF_FILE");
}

TEST(values_are_shown_so_that_they_can_be_seen) {
  static const struct {
    const char *value, *text;
  } cases[] = {
    { "stratus", "\"stratus\"" },
    { "stratus\r", "\"stratus\\r\"" },
    { " a\tb ", "\" a\\tb \"" },
    { "\"eth0\"", "\"\\\"eth0\\\"\"" },
    { "a\\b\x01\x7f\xef\xbb\xbf", "\"a\\\\b\\x01\\x7f\\xef\\xbb\\xbf\"" },
    { "", "\"\"" },
  };
  char text[NCCL_CONF_TEXT_MAX], quoted[QUOTE_MAX];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(quote(cases[i].value, quoted), cases[i].text);
  }
  char value[2 * QUOTE_MAX];
  memset(value, '\r', sizeof value);
  value[sizeof value - 1] = '\0';
  quote(value, quoted);
  assert_true(strlen(quoted) < QUOTE_MAX);
  assert_string_equal(quoted + strlen(quoted) - 6, "\\r...\"");
  struct nccl_conf_setting setting = { "a ", "/etc/nccl.conf", 7 };
  assert_string_equal(nccl_conf_text("NCCL_NET", &setting, text),
                      "NCCL_NET=\"a \" is set in /etc/nccl.conf, line 7");
  setting.file = NULL;
  assert_string_equal(nccl_conf_text("NCCL_NET", &setting, text),
                      "NCCL_NET=\"a \" is set in the environment");
  assert_null(nccl_conf_oddity("AWS Libfabric"));
  assert_null(nccl_conf_oddity(""));
  assert_string_equal(nccl_conf_oddity("x\r"), "the carriage return at its end");
  assert_string_equal(nccl_conf_oddity("x "), "the blank behind it");
  assert_string_equal(nccl_conf_oddity("'x'"), "the quotes around it");
  assert_string_equal(nccl_conf_oddity("x # y"), "the comment behind it");
  assert_null(nccl_conf_oddity("x#y"));
}
