/* SPDX-License-Identifier: Apache-2.0 */
/* The small modules of common/, one part each, and the engine's id_tree: what is larger has a
 * program of its own. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/quantity.h"
#include "common/thread.h"
#include "net_plugin/engine/id_tree.h"
#include "tests/lib/fault.h"
#include "tests/lib/unit.h"

/* ---- clock ---- */

UNIT_TEST(sleep_is_measured) {
  const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
  uint64_t start_ns = clock_now_ns();
  nanosleep(&pause, NULL);
  uint64_t slept_ns = clock_now_ns() - start_ns;
  assert_true(slept_ns >= 20 * NS_PER_MS);
  assert_true(slept_ns < 20 * NS_PER_S); /* a wrong unit would be out by 1000 */
}

/* ---- hex ---- */

UNIT_TEST(bytes_come_back) {
  const uint8_t bytes[] = { 0x00, 0x7f, 0xff, 0xa5 };
  uint8_t read[sizeof bytes];
  char text[2 * sizeof bytes + 1];
  hex_write(bytes, sizeof bytes, text);
  assert_string_equal(text, "007fffa5");
  assert_true(hex_read(text, read, sizeof read));
  assert_memory_equal(read, bytes, sizeof bytes);
  assert_true(hex_read("007FFFa5", read, sizeof read));
  assert_memory_equal(read, bytes, sizeof bytes);
}

UNIT_TEST(other_texts_are_refused) {
  static const char *const texts[] = { "",           "007fffa",  "007fffa50",
                                       "007fffa500", "007fff 5", "0x7fffa5",
                                       "007fffg5",   " 07fffa5", "00:7f:ff:a5" };
  uint8_t read[4];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_false(hex_read(texts[i], read, sizeof read));
  }
}

/* ---- name_distance ---- */

static int between(const char *name, const char *other) {
  return name_distance(name, strlen(name), other, false);
}

static int within(const char *name, const char *word) {
  return name_distance(name, strlen(name), word, true);
}

UNIT_TEST(edits_are_counted) {
  assert_int_equal(between("FLOWS", "FLOWS"), 0);
  assert_int_equal(between("FLOW", "FLOWS"), 1);
  assert_int_equal(between("FLOWZ", "FLOWS"), 1);
  assert_int_equal(between("FOLWS", "FLOWS"), 1);
  assert_int_equal(between("flows", "FLOWS"), 5);
  assert_int_equal(between("", "FLOWS"), 5);
  assert_int_equal(between("FLOWS", ""), 5);
  assert_int_equal(name_distance("FLOWS=8", 5, "FLOWS", false), 0);
}

UNIT_TEST(the_likest_part_counts) {
  assert_int_equal(within("ENABLE_ENCRYPTION", "ENCRYPT"), 0);
  assert_int_equal(within("enable_encryption", "ENCRYPT"), 0);
  assert_int_equal(within("CRYPTO", "ENCRYPT"), 2);
  assert_int_equal(within("ENCRPYTION", "ENCRYPT"), 1);
  assert_int_equal(within("X", "ENCRYPT"), 7);
  assert_int_equal(within("", "ENCRYPT"), 7);
  assert_int_equal(within("ENCRYPT", ""), 0);
}

/* What lies behind the limit is not looked at, on either side. */
UNIT_TEST(long_names_are_cut) {
  char name[4096];
  memset(name, 'X', sizeof name);
  name[sizeof name - 1] = '\0';
  assert_int_equal(between(name, "FLOWS"), NAME_DISTANCE_MAX);
  assert_int_equal(between("FLOWS", name), NAME_DISTANCE_MAX);
  memcpy(name + NAME_DISTANCE_MAX, "ENCRYPT", 7);
  assert_int_equal(within(name, "ENCRYPT"), 7);
  memcpy(name + NAME_DISTANCE_MAX - 7, "ENCRYPT", 7);
  assert_int_equal(within(name, "ENCRYPT"), 0);
}

/* ---- id_tree ---- */

UNIT_TEST(what_has_an_identity_is_found) {
  static struct {
    int other;
    uint8_t id[ID_TREE_BYTES];
  } items[100];
  void *tree = NULL;
  fault_fail(FAULT_ALLOCATION, 1, ENOMEM);
  assert_int_equal(id_tree_add(&tree, items[0].id), -ENOMEM);
  assert_true(fault_clear());
  for (uint8_t i = 0; i < 100; i++) {
    items[i].id[ID_TREE_BYTES - 1] = i;
    assert_null(id_tree_find(&tree, items[i].id));
    assert_int_equal(id_tree_add(&tree, items[i].id), 0);
  }
  uint8_t again[ID_TREE_BYTES];
  memcpy(again, items[7].id, sizeof again);
  assert_int_equal(id_tree_add(&tree, again), -EEXIST);
  for (int i = 0; i < 100; i += 2) {
    id_tree_remove(&tree, items[i].id);
  }
  for (int i = 0; i < 100; i++) {
    assert_ptr_equal(id_tree_find(&tree, items[i].id), i % 2 ? items[i].id : NULL);
  }
  for (int i = 1; i < 100; i += 2) {
    id_tree_remove(&tree, items[i].id);
  }
  assert_null(tree);
}

/* ---- thread ---- */

static void *read_mask(void *argument) {
  pthread_sigmask(SIG_SETMASK, NULL, argument);
  return NULL;
}

UNIT_TEST(only_its_own_faults_reach_a_thread) {
  static const int others[] = {
    SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM, SIGIO
  };
  static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
  sigset_t mask, before, after;
  pthread_t thread;
  sigemptyset(&mask);
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  assert_int_equal(thread_start(&thread, read_mask, &mask), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_int_equal(sigismember(&mask, others[i]), 1);
  }
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    assert_int_equal(sigismember(&mask, faults[i]), 0);
  }
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  assert_int_equal(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
}
