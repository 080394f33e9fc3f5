/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a temporary directory of files and links, such as an invented sysfs.
 * Owns: the directory, until tree_remove.  Threads: the test's.
 * Blocks: on the file system.  Fails: the test, with the path. */
#ifndef TESTS_LIB_TREE_H
#define TESTS_LIB_TREE_H

#include <stddef.h>

struct tree {
  char root[64]; /* absolute */
};

void tree_create(struct tree *tree);
void tree_remove(struct tree *tree);

/* Set-up and tear-down of a test that needs one tree: this. */
extern struct tree test_tree;
int test_tree_create(void **state);
int test_tree_remove(void **state);

/* Writes a file below the root; directories above it are made. */
void tree_write(const struct tree *tree, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tree_write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t count);

/* Makes a symbolic link below the root that holds `target`, as it is. */
void tree_link(const struct tree *tree, const char *path, const char *target);
void tree_make_directory(const struct tree *tree, const char *path);

/* "root/path", in a buffer of the caller's. Returns `full`. */
enum { TREE_PATH_MAX = 4096 };
const char *tree_path(const struct tree *tree, const char *path, char full[TREE_PATH_MAX]);

#endif
