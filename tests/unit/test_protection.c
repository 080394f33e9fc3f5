/* SPDX-License-Identifier: Apache-2.0 */
/* The job secret while its file is read. Which secrets and files are refused, and what a secret
 * keeps out, is test_trust.c's. */
#include "net_plugin/setup/protection.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/param.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static void *load(void *error) {
  *(int *)error = protection_check();
  return NULL;
}

/* Handshakes ask for it with the engine lock: if that waited for the file, this would never end. */
UNIT_TEST(nobody_waits_for_a_secret_that_is_being_read) {
  struct tree tree;
  char variable[TREE_PATH_MAX + 32], path[TREE_PATH_MAX];
  int error = -1, fd;
  pthread_t reader;
  tree_create(&tree);
  assert_int_equal(mkfifo(tree_path(&tree, "fifo", path), 0600), 0);
  snprintf(variable, sizeof variable, "STRATUS_SECRET_FILE=%s", path);
  param_load((char *[]){ variable, NULL });
  assert_int_equal(pthread_create(&reader, NULL, load, &error), 0);
  while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) { /* it has opened the file */
    usleep(100);
  }
  assert_false(protection_has_secret());
  assert_int_equal(write(fd, "0123456789abcdef", 16), 16);
  close(fd);
  pthread_join(reader, NULL);
  assert_int_equal(error, 0);
  assert_true(protection_has_secret());
  param_load((char *[]){ NULL });
  assert_int_equal(protection_check(), 0);
  assert_false(protection_has_secret());
  tree_remove(&tree);
}
