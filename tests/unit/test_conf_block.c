/* SPDX-License-Identifier: Apache-2.0 */
/* Our lines in NCCL's configuration file: added and taken back, whatever stands around and between
 * them, and that nobody redirects who writes them. */
#include "common/tools/conf_block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

/* Of the user who moves directories about while another one, root, writes. */
enum { OTHER = 65534 };

static struct tree tree;
static const struct conf_block_line lines[] = { { "NCCL_NET_PLUGIN", "stratus" } };
static char why_not[CONF_BLOCK_WHY_MAX];

/* ---- what happens in between ---- */

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);
int __real_renameat(int from, const char *path, int to, const char *name);
int __wrap_renameat(int from, const char *path, int to, const char *name);
int __real_unlinkat(int directory, const char *path, int flags);
int __wrap_unlinkat(int directory, const char *path, int flags);

static unsigned countdown; /* the call before which it happens, of those wrapped; 0: never */
static bool is_swapped;
static bool is_mounted; /* "nccl.conf" itself, as into a container */

static const char *at(const char *path) {
  static char buffers[4][TREE_PATH_MAX];
  static unsigned next;
  return tree_path(&tree, path, buffers[next++ % 4]);
}

/* "home" is elsewhere from now on, and the name leads to "root". */
static void swap(void) {
  if (countdown > 0 && --countdown == 0) {
    is_swapped = true;
    assert_int_equal(rename(at("home"), at("moved")), 0);
    assert_int_equal(symlink(at("root"), at("home")), 0);
    if (geteuid() == 0) {
      assert_int_equal(lchown(at("home"), OTHER, OTHER), 0);
    }
  }
}

int __wrap_openat(int directory, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  swap();
  return __real_openat(directory, path, flags, mode);
}

int __wrap_renameat(int from, const char *path, int to, const char *name) {
  swap();
  if (is_mounted) {
    errno = EBUSY;
    return -1;
  }
  return __real_renameat(from, path, to, name);
}

int __wrap_unlinkat(int directory, const char *path, int flags) {
  swap();
  if (is_mounted && strcmp(path, "nccl.conf") == 0) {
    errno = EBUSY;
    return -1;
  }
  return __real_unlinkat(directory, path, flags);
}

/* ---- files ---- */

static void write_text(const char *path, const char *text) {
  tree_write(&tree, path, "%s", text);
}

static const char *text_of(const char *path) {
  static char text[4096];
  FILE *file = fopen(at(path), "re");
  if (!file) {
    return NULL;
  }
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static int write_lines(const char *path) {
  return conf_block_write(at(path), lines, 1, why_not);
}

static bool has_lines(const char *path) {
  const char *text = text_of(path);
  return text && strstr(text, "\nNCCL_NET_PLUGIN=stratus\n") != NULL;
}

static int begin(void **state) {
  (void)state;
  countdown = 0;
  is_swapped = is_mounted = false;
  tree_create(&tree);
  write_text("home/nccl.conf", "A=1\n");
  write_text("root/nccl.conf", "B=2\n");
  return 0;
}

static int end(void **state) {
  (void)state;
  tree_remove(&tree);
  return 0;
}

/* ---- what it does ---- */

UNIT_TEST_WITH(what_is_added_is_taken_back, begin, end) {
  struct conf_block_removed removed;
  assert_int_equal(chmod(at("home/nccl.conf"), 0640), 0);
  assert_int_equal(write_lines("home/nccl.conf"), 0);
  assert_int_equal(write_lines("home/nccl.conf"), 0);
  assert_true(has_lines("home/nccl.conf"));
  struct stat status;
  assert_int_equal(stat(at("home/nccl.conf"), &status), 0);
  assert_int_equal(status.st_mode & 07777, 0640);
  assert_int_equal(conf_block_remove(at("home/nccl.conf"), &removed, why_not), 0);
  assert_true(removed.has_block);
  assert_string_equal(text_of("home/nccl.conf"), "A=1\n");
  assert_int_equal(write_lines("home/new.conf"), 0);
  assert_int_equal(conf_block_remove(at("home/new.conf"), &removed, why_not), 0);
  assert_int_equal(access(at("home/new.conf"), F_OK), -1);
  assert_int_equal(write_lines("absent/nccl.conf"), -ENOENT);
}

UNIT_TEST_WITH(a_link_of_ones_own_is_followed_and_stays, begin, end) {
  struct conf_block_removed removed;
  tree_link(&tree, "home/link.conf", "../root/nccl.conf");
  tree_link(&tree, "far", at("root"));
  static const char *const paths[] = { "home/link.conf", "far/nccl.conf",
                                       "home/../root/nccl.conf" };
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    assert_int_equal(write_lines(paths[i]), 0);
    assert_true(has_lines("root/nccl.conf"));
    assert_int_equal(conf_block_remove(at(paths[i]), &removed, why_not), 0);
    assert_string_equal(text_of("root/nccl.conf"), "B=2\n");
  }
  char target[64];
  assert_int_equal(readlink(at("home/link.conf"), target, sizeof target), 17);
  tree_link(&tree, "home/round", "round");
  assert_int_equal(write_lines("home/round"), -ELOOP);
}

UNIT_TEST_WITH(a_link_that_leads_nowhere_is_filled_and_stays, begin, end) {
  struct conf_block_removed removed;
  char target[64];
  tree_link(&tree, "home/dangling.conf", "../root/new.conf");
  assert_int_equal(write_lines("home/dangling.conf"), 0);
  assert_int_equal(readlink(at("home/dangling.conf"), target, sizeof target), 16);
  assert_true(has_lines("root/new.conf"));
  assert_int_equal(conf_block_remove(at("home/dangling.conf"), &removed, why_not), 0);
  assert_true(removed.has_block);
  assert_int_equal(access(at("root/new.conf"), F_OK), -1);
  assert_int_equal(readlink(at("home/dangling.conf"), target, sizeof target), 16);
  tree_link(&tree, "home/nowhere.conf", "../absent/new.conf");
  assert_int_equal(write_lines("home/nowhere.conf"), -ENOENT);
  assert_non_null(strstr(why_not, "make it first"));
}

/* What is left of a file without our lines, and how many lines between the marks are not ours. */
UNIT_TEST_WITH(only_our_lines_are_taken_out, begin, end) {
#define BEGIN "# >>> stratus-env --write-conf; stratus-env --remove-conf takes these lines back\n"
#define OURS "NCCL_NET_PLUGIN=stratus\n"
#define END "# <<< stratus-env\n"
  static const struct {
    const char *before, *after;
    unsigned kept_lines;
  } cases[] = {
    { BEGIN OURS END "A=1\n", "A=1\n", 0 },
    { "A=1\n" BEGIN OURS END "B=1", "A=1\nB=1", 0 },
    { BEGIN OURS "NCCL_BUFFSIZE=1\n" END "A=1\n", "NCCL_BUFFSIZE=1\nA=1\n", 1 },
    { BEGIN "NCCL_NET_PLUGIN=none\n" END, "NCCL_NET_PLUGIN=none\n", 1 },
    { BEGIN "# mine\n" OURS "\n" END, "# mine\n\n", 2 },
    { BEGIN
      "NCCL_NET_PLUGIN=/opt/lib/libnccl-net-stratus.so\n"
      "NCCL_TUNER_PLUGIN=/opt/lib/libnccl-tuner-stratus.so\nNCCL_NET_PLUGIN_REF_COUNT=1\n" END,
      "", 0 },
    { BEGIN "NCCL_NET_PLUGIN=stratus,none\nNCCL_NET_PLUGIN_REF_COUNT=0\n" END,
      "NCCL_NET_PLUGIN=stratus,none\nNCCL_NET_PLUGIN_REF_COUNT=0\n", 2 },
    { "A=1\r\n# >>> stratus-env --write-conf\r\nNCCL_NET_PLUGIN=stratus\r\n# <<< stratus-env\r\n"
      "B=1\r\n",
      "A=1\r\nB=1\r\n", 0 },
    { BEGIN OURS END "A=1\n" BEGIN OURS END "B=1\n", "A=1\nB=1\n", 0 },
    { BEGIN OURS "# <<< stratus-env", "", 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct conf_block_removed removed;
    write_text("home/nccl.conf", cases[i].before);
    assert_int_equal(conf_block_remove(at("home/nccl.conf"), &removed, why_not), 0);
    assert_string_equal(text_of("home/nccl.conf"), cases[i].after);
    assert_true(removed.has_block);
    assert_int_equal(removed.kept_lines, cases[i].kept_lines);
    /* And the same by a write, whose block stands first. */
    write_text("home/nccl.conf", cases[i].before);
    assert_int_equal(write_lines("home/nccl.conf"), 0);
    const char *text = text_of("home/nccl.conf");
    assert_non_null(text);
    assert_true(strncmp(text, "# >>> stratus-env", 17) == 0);
    const char *behind = strstr(text, END);
    assert_non_null(behind);
    assert_string_equal(behind + strlen(END), cases[i].after);
  }
}

UNIT_TEST_WITH(a_mark_that_is_missing_is_named_by_its_line, begin, end) {
  static const struct {
    const char *before, *says;
  } cases[] = {
    { "A=1\n" BEGIN OURS "B=1\n", "nccl.conf, line 2: of the two marks" },
    { "A=1\n" OURS END "B=1\n", "nccl.conf, line 3: of the two marks" },
    { BEGIN OURS BEGIN OURS END, "nccl.conf, line 1: of the two marks" },
    { END BEGIN OURS, "nccl.conf, line 1: of the two marks" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct conf_block_removed removed;
    write_text("home/nccl.conf", cases[i].before);
    assert_int_equal(conf_block_remove(at("home/nccl.conf"), &removed, why_not), -EINVAL);
    assert_non_null(strstr(why_not, cases[i].says));
    assert_int_equal(write_lines("home/nccl.conf"), -EINVAL);
    assert_string_equal(text_of("home/nccl.conf"), cases[i].before);
  }
}

UNIT_TEST_WITH(what_others_have_set_is_found, begin, end) {
  char value[NCCL_CONF_VALUE_MAX];
  unsigned line;
  write_text("home/nccl.conf", BEGIN OURS "NCCL_TUNER_PLUGIN=x\n" END "# a\nNCCL_NET_PLUGIN=y\r\n");
  assert_true(conf_block_read_others(at("home/nccl.conf"), "NCCL_TUNER_PLUGIN", value, &line));
  assert_string_equal(value, "x"); /* an edit between the marks */
  assert_int_equal(line, 3);
  assert_true(conf_block_read_others(at("home/nccl.conf"), "NCCL_NET_PLUGIN", value, &line));
  assert_string_equal(value, "y\r");
  assert_int_equal(line, 6);
  assert_false(conf_block_read_others(at("home/nccl.conf"), "NCCL_NET", value, &line));
  assert_false(conf_block_read_others(at("home"), "NCCL_NET", value, &line));
  assert_false(conf_block_read_others(at("absent"), "NCCL_NET", value, &line));
}

UNIT_TEST_WITH(what_is_no_file_is_left_alone, begin, end) {
  assert_int_equal(mkfifo(at("home/fifo"), 0600), 0);
  assert_int_equal(write_lines("home/fifo"), -EINVAL);
  assert_non_null(strstr(why_not, "not a regular file"));
  assert_int_equal(write_lines("home"), -EISDIR);
  assert_non_null(strstr(why_not, "name a file"));
  tree_write_bytes(&tree, "home/zero", "A=1\0B=2\n", 8);
  assert_int_equal(write_lines("home/zero"), -EINVAL);
  assert_non_null(strstr(why_not, "byte 0"));
  assert_int_equal(write_lines("home/nccl.conf/x"), -ENOTDIR);
}

UNIT_TEST_WITH(a_file_that_is_mounted_stays_as_it_is, begin, end) {
  struct conf_block_removed removed;
  is_mounted = true;
  setenv("HOME_IS", at("home"), 1);
  assert_int_equal(write_lines("home/nccl.conf"), -EBUSY);
  assert_non_null(strstr(why_not, "the file is mounted here"));
  assert_string_equal(text_of("home/nccl.conf"), "A=1\n");
  assert_int_equal(system("test \"$(ls -A \"$HOME_IS\")\" = nccl.conf"), 0);
  is_mounted = false;
  assert_int_equal(unlink(at("home/nccl.conf")), 0);
  assert_int_equal(write_lines("home/nccl.conf"), 0);
  is_mounted = true;
  assert_int_equal(conf_block_remove(at("home/nccl.conf"), &removed, why_not), -EBUSY);
  assert_true(has_lines("home/nccl.conf"));
}

/* ---- the directory is another one, in between ---- */

static void nothing_changed_in_root(void) {
  assert_string_equal(text_of("root/nccl.conf"), "B=2\n");
  assert_int_equal(system("test \"$(ls -A \"$ROOT\")\" = nccl.conf"), 0);
}

/* Before any of the calls: either it is refused, or done where the directory is now. */
static void swapped_before_each_call(bool removes) {
  setenv("ROOT", at("root"), 1);
  bool has_swapped = true;
  unsigned done = 0, refused = 0;
  for (unsigned k = 1; has_swapped; k++) {
    struct conf_block_removed removed;
    end(NULL);
    begin(NULL);
    setenv("ROOT", at("root"), 1);
    if (removes) {
      assert_int_equal(unlink(at("home/nccl.conf")), 0);
      assert_int_equal(write_lines("home/nccl.conf"), 0);
    }
    countdown = k;
    int error = removes ? conf_block_remove(at("home/nccl.conf"), &removed, why_not)
                        : write_lines("home/nccl.conf");
    has_swapped = is_swapped;
    countdown = 0;
    nothing_changed_in_root();
    if (error) {
      assert_int_equal(error, -EPERM);
      assert_non_null(strstr(why_not, "symbolic link of another user"));
    } else if (!removes) {
      assert_true(has_lines(has_swapped ? "moved/nccl.conf" : "home/nccl.conf"));
    } else {
      assert_null(text_of(has_swapped ? "moved/nccl.conf" : "home/nccl.conf"));
    }
    refused += error != 0;
    done += error == 0 && has_swapped;
  }
  assert_true(refused >= 1);
  assert_true(done >= 2);
}

UNIT_TEST_WITH(a_swapped_directory_does_not_redirect_root, begin, end) {
  if (geteuid() != 0) {
    print_message("# skipped: not root, who alone is kept from others' links\n");
    skip();
  }
  swapped_before_each_call(false);
  swapped_before_each_call(true);
}

UNIT_TEST_WITH(root_follows_no_link_of_another_user, begin, end) {
  if (geteuid() != 0) {
    print_message("# skipped: not root, who alone is kept from others' links\n");
    skip();
  }
  tree_link(&tree, "home/link.conf", "../root/nccl.conf");
  assert_int_equal(lchown(at("home/link.conf"), OTHER, OTHER), 0);
  assert_int_equal(write_lines("home/link.conf"), -EPERM);
  assert_non_null(strstr(why_not, "name the file itself"));
  assert_string_equal(text_of("root/nccl.conf"), "B=2\n");
  /* A file in a directory of another user stays his. */
  assert_int_equal(chown(at("home"), OTHER, OTHER), 0);
  assert_int_equal(chown(at("home/nccl.conf"), OTHER, OTHER), 0);
  assert_int_equal(write_lines("home/nccl.conf"), 0);
  struct stat status;
  assert_int_equal(stat(at("home/nccl.conf"), &status), 0);
  assert_int_equal(status.st_uid, OTHER);
}

UNIT_MAIN(NULL, NULL)
