/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary trees below /tmp. */
#include "tests/lib/tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail_path(const char *what, const char *path) {
  fprintf(stderr, "tree: cannot %s %s: %s\n", what, path, strerror(errno));
  abort();
}

void tree_create(struct tree *tree) {
  snprintf(tree->root, sizeof tree->root, "/tmp/stratus-test-XXXXXX");
  if (!mkdtemp(tree->root)) {
    fail_path("create", tree->root);
  }
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
  return remove(path);
}

void tree_remove(struct tree *tree) {
  if (nftw(tree->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) {
    fail_path("remove", tree->root);
  }
}

const char *tree_path(const struct tree *tree, const char *path, char full[TREE_PATH_MAX]) {
  snprintf(full, TREE_PATH_MAX, "%s/%s", tree->root, path);
  return full;
}

/* Makes the directories above the last part of `full`. */
static void make_parents(char *full) {
  for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(full, 0700) < 0 && errno != EEXIST) {
      fail_path("make directory", full);
    }
    *slash = '/';
  }
}

void tree_make_directory(const struct tree *tree, const char *path) {
  char full[TREE_PATH_MAX];
  tree_path(tree, path, full);
  make_parents(full);
  if (mkdir(full, 0700) < 0 && errno != EEXIST) {
    fail_path("make directory", full);
  }
}

void tree_write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t count) {
  char full[TREE_PATH_MAX];
  tree_path(tree, path, full);
  make_parents(full);
  FILE *file = fopen(full, "we");
  if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
    fail_path("write", full);
  }
}

void tree_write(const struct tree *tree, const char *path, const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) {
    fail_path("format", path);
  }
  tree_write_bytes(tree, path, text, (size_t)length);
  free(text);
}

void tree_link(const struct tree *tree, const char *path, const char *target) {
  char full[TREE_PATH_MAX];
  tree_path(tree, path, full);
  make_parents(full);
  if (symlink(target, full) < 0) {
    fail_path("link", full);
  }
}

struct tree test_tree;

int test_tree_create(void **state) {
  tree_create(&test_tree);
  return 0;
}

int test_tree_remove(void **state) {
  tree_remove(&test_tree);
  return 0;
}
