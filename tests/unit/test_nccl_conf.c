/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's configuration file: what is added and taken back, and that nobody redirects who writes it.
 */
#include "common/tools/nccl_conf.h"

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
static const struct nccl_conf_line lines[] = { { "NCCL_NET_PLUGIN", "stratus" } };
static char why_not[NCCL_CONF_WHY_MAX];

/* ---- what happens in between ---- */

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);
int __real_renameat(int from, const char *path, int to, const char *name);
int __wrap_renameat(int from, const char *path, int to, const char *name);
int __real_unlinkat(int directory, const char *path, int flags);
int __wrap_unlinkat(int directory, const char *path, int flags);

static unsigned countdown; /* the call before which it happens, of those wrapped; 0: never */
static bool is_swapped;

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
  return __real_renameat(from, path, to, name);
}

int __wrap_unlinkat(int directory, const char *path, int flags) {
  swap();
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
  return nccl_conf_write(at(path), lines, 1, why_not);
}

static bool has_lines(const char *path) {
  const char *text = text_of(path);
  return text && strstr(text, "\nNCCL_NET_PLUGIN=stratus\n") != NULL;
}

static int begin(void **state) {
  (void)state;
  countdown = 0;
  is_swapped = false;
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

static void what_is_added_is_taken_back(void **state) {
  (void)state;
  bool is_changed;
  assert_int_equal(chmod(at("home/nccl.conf"), 0640), 0);
  assert_int_equal(write_lines("home/nccl.conf"), 0);
  assert_int_equal(write_lines("home/nccl.conf"), 0);
  assert_true(has_lines("home/nccl.conf"));
  struct stat status;
  assert_int_equal(stat(at("home/nccl.conf"), &status), 0);
  assert_int_equal(status.st_mode & 07777, 0640);
  assert_int_equal(nccl_conf_remove(at("home/nccl.conf"), &is_changed, why_not), 0);
  assert_true(is_changed);
  assert_string_equal(text_of("home/nccl.conf"), "A=1\n");
  assert_int_equal(write_lines("home/new.conf"), 0);
  assert_int_equal(nccl_conf_remove(at("home/new.conf"), &is_changed, why_not), 0);
  assert_int_equal(access(at("home/new.conf"), F_OK), -1);
  assert_int_equal(write_lines("absent/nccl.conf"), -ENOENT);
}

static void a_link_of_ones_own_is_followed_and_stays(void **state) {
  (void)state;
  bool is_changed;
  tree_link(&tree, "home/link.conf", "../root/nccl.conf");
  tree_link(&tree, "far", at("root"));
  static const char *const paths[] = { "home/link.conf", "far/nccl.conf",
                                       "home/../root/nccl.conf" };
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    assert_int_equal(write_lines(paths[i]), 0);
    assert_true(has_lines("root/nccl.conf"));
    assert_int_equal(nccl_conf_remove(at(paths[i]), &is_changed, why_not), 0);
    assert_string_equal(text_of("root/nccl.conf"), "B=2\n");
  }
  char target[64];
  assert_int_equal(readlink(at("home/link.conf"), target, sizeof target), 17);
  tree_link(&tree, "home/round", "round");
  assert_int_equal(write_lines("home/round"), -ELOOP);
}

static void what_is_no_file_is_left_alone(void **state) {
  (void)state;
  assert_int_equal(mkfifo(at("home/fifo"), 0600), 0);
  assert_int_equal(write_lines("home/fifo"), -EINVAL);
  assert_non_null(strstr(why_not, "not a regular file"));
  assert_int_equal(write_lines("home"), -EISDIR);
  assert_int_equal(write_lines("home/nccl.conf/x"), -ENOTDIR);
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
    bool is_changed;
    end(NULL);
    begin(NULL);
    setenv("ROOT", at("root"), 1);
    if (removes) {
      assert_int_equal(unlink(at("home/nccl.conf")), 0);
      assert_int_equal(write_lines("home/nccl.conf"), 0);
    }
    countdown = k;
    int error = removes ? nccl_conf_remove(at("home/nccl.conf"), &is_changed, why_not)
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

static void a_swapped_directory_does_not_redirect_root(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("# skipped: not root, who alone is kept from others' links\n");
    skip();
  }
  swapped_before_each_call(false);
  swapped_before_each_call(true);
}

static void root_follows_no_link_of_another_user(void **state) {
  (void)state;
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_is_added_is_taken_back, begin, end),
    cmocka_unit_test_setup_teardown(a_link_of_ones_own_is_followed_and_stays, begin, end),
    cmocka_unit_test_setup_teardown(what_is_no_file_is_left_alone, begin, end),
    cmocka_unit_test_setup_teardown(a_swapped_directory_does_not_redirect_root, begin, end),
    cmocka_unit_test_setup_teardown(root_follows_no_link_of_another_user, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
