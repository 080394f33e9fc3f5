/* SPDX-License-Identifier: Apache-2.0 */
/* tuner: opening with good, bad and no profile; what is said, what is shared, what is counted. In a
 * calibration each call that may gets the cell, and elsewhere none. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/json_text.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/offer.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/plugin/tuner.h"

/* ---- a job as the tuner sees it: 32 ranks on 4 nodes, a directory with its profiles that is the
 * machine's root, too, and NCCL's table of costs ---- */

static const struct tuner_host job_host = { .abi_version = 5, .nccl_version = 22907 };
static const struct tuner_shape job_shape = { .ranks = 32, .nodes = 4 };

static int job_set_up(void **state) {
  unsetenv("NCCL_ALGO");
  tree_create(&test_tree);
  log_capture_start();
  return 0;
}

static int job_tear_down(void **state) {
  log_capture_stop();
  tree_remove(&test_tree);
  return 0;
}

/* Parameters as the plugin would read them: the profile, a file below the tree or none if empty,
 * and one more, as in "STRATUS_TUNER=0", or none if empty. */
static void job_set(const char *profile_file, const char *other) {
  static char profile[256], extra[256];
  snprintf(profile, sizeof profile, "STRATUS_PROFILE=%s/%s", test_tree.root, profile_file);
  snprintf(extra, sizeof extra, "%s", other);
  char *environment[] = { extra, profile_file[0] ? profile : NULL, NULL };
  param_load(environment);
  sysfs_process_root = test_tree.root;
  setenv("XDG_CONFIG_HOME", test_tree.root, 1);
}

static struct tuner *job_open_as(struct tuner_host host, struct tuner_shape shape) {
  struct tuner *tuner = tuner_open(host, shape);
  assert_non_null(tuner);
  return tuner;
}

static struct tuner *job_open(void) {
  return job_open_as(job_host, job_shape);
}

/* One call of a collective for which NCCL prefers tree to ring; was ring chosen? */
static bool job_call(struct tuner *tuner, int coll, size_t bytes, int *channels) {
  struct offer offer = offer_of(-1.0f, 10.0f, -1.0f, 20.0f);
  tuner_choose_by_costs(tuner, coll, bytes, offer_costs(&offer), channels);
  assert_true(offer.us[PROFILE_TREE][PROFILE_SIMPLE] == 10.0f);
  return offer.us[PROFILE_RING][PROFILE_SIMPLE] == 0.0f;
}

/* Calls of 4 KiB, of which each '+' is the row's and each '-' NCCL's own; '|' ends a group. */
static void assert_calls(struct tuner *tuner, const char *pattern) {
  for (; *pattern; pattern++) {
    int channels = 0;
    if (*pattern == '|') {
      tuner_group_ends(tuner);
      continue;
    }
    assert_int_equal(job_call(tuner, PROFILE_ALLREDUCE, 4096, &channels), *pattern == '+');
    assert_int_equal(channels, *pattern == '+' ? 4 : 0);
  }
}

#define TEST(test) UNIT_TEST_WITH(test, job_set_up, job_tear_down)

/* ---- profiles ---- */

/* The text without its last brace. */
#define GOOD                                                                                       \
  "{'schema': 2, 'id': 'good', 'nccl_min': 22105, 'nccl_max': 22999, 'tables': ["                  \
  "{'coll': 'allreduce', 'nodes': 4, 'ppn': 8, 'rows': [{'bytes_lo': 1024, 'bytes_hi': 1048576, "  \
  "'algo': 'ring', 'proto': 'simple', 'channels': 4}]}]"

static void write_good(void) {
  tree_write(&test_tree, "p.profile", "%s", json_text(GOOD "}"));
}

TEST(profile_chooses_and_counts) {
  write_good();
  job_set("p.profile", "");
  struct tuner *tuner = job_open();
  int channels = 0;
  assert_false(job_call(tuner, PROFILE_ALLREDUCE, 1023, &channels));
  assert_int_equal(channels, 0);
  assert_true(job_call(tuner, PROFILE_ALLREDUCE, 1024, &channels));
  assert_int_equal(channels, 4);
  struct tuner_counts counts = tuner_get_counts(tuner);
  assert_int_equal(counts.calls, 2);
  assert_int_equal(counts.chosen, 1);
  tuner_close(tuner);
  assert_int_equal(log_capture_find("1 rows of profile good match"), 1);
  assert_int_equal(log_capture_find("the profile chose for 1 of 2 calls"), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

TEST(only_what_was_measured_is_chosen) {
  static const struct {
    struct tuner_host host;
    struct tuner_shape shape;
    const char *calls;
  } cases[] = {
    { { 5, 22907, NET_USE_OTHER }, { 32, 4, false }, "++" },
    { { 5, 0, NET_USE_OTHER }, { 32, 4, false }, "++" },
    { { 5, 22999, NET_USE_OTHER }, { 32, 4, false }, "++" },
    /* another release, another shape */
    { { 6, 23003, NET_USE_OTHER }, { 32, 4, false }, "--" },
    { { 3, 22104, NET_USE_OTHER }, { 32, 4, false }, "--" },
    { { 5, 22907, NET_USE_OTHER }, { 16, 4, false }, "--" },
    { { 5, 22907, NET_USE_OTHER }, { 33, 4, false }, "--" },
    { { 5, 22907, NET_USE_OTHER }, { 8, 1, false }, "--" },
    { { 5, 22907, NET_USE_OTHER }, { 0, 0, false }, "--" },
    { { 5, 22907, NET_USE_OTHER }, { 32, 4, true }, "--" },
    /* Hosts are compared as they connect, which the first call makes them do. */
    { { 5, 22907, NET_USE_STRATUS }, { 32, 4, false }, "-+|+" },
    /* NCCL chooses for all calls of a group before it connects any algorithm, then asks for chunks.
     * Before version 6 nothing tells a group from one call after the other. */
    { { 6, 22907, NET_USE_STRATUS }, { 32, 4, false }, "--|+" },
    /* rows were measured over stratus */
    { { 5, 22907, NET_USE_LOST }, { 32, 4, false }, "--" },
    { { 5, 22907, NET_USE_LOST }, { 32, 4, false }, "--" },
  };
  write_good();
  job_set("p.profile", "");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct tuner *tuner = job_open_as(cases[i].host, cases[i].shape);
    assert_calls(tuner, cases[i].calls);
    tuner_close(tuner);
  }
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_int_equal(log_capture_find("NCCL does not send over stratus here"), 1);
}

TEST(calls_without_a_row_leave_collnet_out) {
  static const struct {
    int abi_version;
    const char *collnet;
    enum net_use net;
    bool is_left_out;
  } cases[] = {
    { 5, "STRATUS_COLLNET=full", NET_USE_STRATUS, true },
    { 5, "STRATUS_COLLNET=full", NET_USE_OTHER, false },
    { 5, "STRATUS_COLLNET=off", NET_USE_STRATUS, false },
    { 2, "STRATUS_COLLNET=full", NET_USE_STRATUS, false }, /* shows no costs */
  };
  write_good();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    job_set("p.profile", cases[i].collnet);
    struct tuner_host host = job_host;
    host.net = cases[i].net;
    host.abi_version = cases[i].abi_version;
    struct tuner *tuner = job_open_as(host, (struct tuner_shape){ 16, 4, false });
    float us[PROFILE_ALGORITHM_COUNT] = { 1, 1, 1, 1, -1, -1, -1 };
    struct decide_costs costs = { .us = us, .algos = PROFILE_ALGORITHM_COUNT, .protos = 1 };
    int channels = 0;
    if (host.abi_version >= 3) {
      tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, 8, costs, &channels);
    }
    assert_true(us[PROFILE_RING] == 1 && us[PROFILE_TREE] == 1);
    assert_int_equal(us[PROFILE_COLLNET_DIRECT] < 0, cases[i].is_left_out);
    assert_int_equal(us[PROFILE_COLLNET_CHAIN] < 0, cases[i].is_left_out);
    tuner_close(tuner);
    assert_int_equal(log_capture_find("matches, NCCL's own choice is untouched"), 1);
    assert_int_equal(log_capture_find("untouched, but for CollNet"), cases[i].is_left_out);
    log_capture_start();
  }
}

/* The file is read by the first communicator and again only after the last has gone. */
TEST(profile_is_read_once) {
  write_good();
  job_set("p.profile", "");
  struct tuner *first = job_open();
  tree_write(&test_tree, "p.profile", "gone bad");
  struct tuner *second = job_open();
  tuner_close(first);
  struct tuner *third = job_open();
  assert_calls(second, "+");
  assert_calls(third, "+");
  tuner_close(second);
  tuner_close(third);
  struct tuner *fourth = job_open();
  assert_calls(fourth, "-");
  tuner_close(fourth);
}

/* Another host may not have it, and without the net plugin nobody would notice. */
TEST(found_by_topology_counts_where_hosts_are_compared) {
  static const struct {
    enum net_use net;
    const char *topology, *profile;
    const char *calls;
  } cases[] = {
    { NET_USE_STRATUS, "0123456789ab", "", "-+" },
    { NET_USE_STRATUS, "ba9876543210", "", "--" },
    { NET_USE_OTHER, "0123456789ab", "", "--" },
    { NET_USE_OTHER, "0123456789ab", "stratus/profiles/p.profile", "++" },
    { NET_USE_OTHER, "ba9876543210", "stratus/profiles/p.profile", "++" },
  };
  tree_write(&test_tree, "stratus/profiles/p.profile", "%s",
             json_text(GOOD ", 'match': {'topology': '0123456789ab'}}"));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char word[64];
    snprintf(word, sizeof word, "STRATUS_TOPOLOGY=%s", cases[i].topology);
    job_set(cases[i].profile, word);
    struct tuner_host host = job_host;
    host.net = cases[i].net;
    struct tuner *tuner = job_open_as(host, job_shape);
    assert_calls(tuner, cases[i].calls);
    tuner_close(tuner);
  }
}

enum { CALLS = 100 };

/* Opens one that has a row, and one that has none, in turn. */
static void *open_and_choose(void *shared) {
  for (int i = 0; i < CALLS; i++) {
    bool has_row = i % 2;
    struct tuner *own = tuner_open(job_host, (struct tuner_shape){ has_row ? 32 : 28, 4, false });
    int channels = 0;
    if (!own || job_call(own, PROFILE_ALLREDUCE, 4096, &channels) != has_row ||
        !job_call(shared, PROFILE_ALLREDUCE, 4096, &channels)) {
      return "wrong";
    }
    tuner_close(own);
  }
  return NULL;
}

TEST(threads_share_profile_and_tuner) {
  enum { THREADS = 4 };
  write_good();
  job_set("p.profile", "STRATUS_LOG=warn");
  pthread_t threads[THREADS];
  struct tuner *shared = job_open();
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, open_and_choose, shared), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *problem;
    pthread_join(threads[i], &problem);
    assert_null(problem);
  }
  assert_int_equal(tuner_get_counts(shared).calls, THREADS * CALLS);
  tuner_close(shared);
}

/* ---- calibration ---- */

static const struct tuner_shape small = { .ranks = 4, .nodes = 2 };

static struct tuner *open_calibration(struct tuner_host host, struct tuner_shape shape,
                                      const char *plan) {
  char variable[64];
  snprintf(variable, sizeof variable, "STRATUS_CALIBRATE=%s", plan);
  job_set("", variable);
  return job_open_as(host, shape);
}

/* One call; what a rank would run, as algorithm * 1000 + protocol * 100 + channels. */
static int run(struct tuner *tuner, uint64_t bytes) {
  struct offer offer = offer_of(10.0f, -1.0f, 12.0f, 20.0f);
  struct decide_costs costs = offer_costs(&offer);
  int channels = 0, best = -1; /* none */
  tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, bytes, costs, &channels);
  for (int cell = 0; cell < COSTS_CELLS; cell++) {
    bool is_better = costs.us[cell] >= 0 && (best < 0 || costs.us[cell] < costs.us[best]);
    best = is_better ? cell : best;
  }
  return best / PROFILE_PROTOCOL_COUNT * 1000 + best % PROFILE_PROTOCOL_COUNT * 100 + channels;
}

TEST(every_call_gets_the_cell_if_it_may) {
  static const struct {
    const char *text;
    int ran;
  } cases[] = {
    { "default", PROFILE_TREE * 1000 + PROFILE_LL * 100 },
    { "tree.ll", PROFILE_TREE * 1000 + PROFILE_LL * 100 },
    { "ring.simple", PROFILE_RING * 1000 + PROFILE_SIMPLE * 100 },
    { "ring.ll@2", PROFILE_RING * 1000 + PROFILE_LL * 100 + 2 },
    { "tree.simple", PROFILE_TREE * 1000 + PROFILE_LL * 100 }, /* ruled out by NCCL */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct tuner *tuner = open_calibration(job_host, small, cases[i].text);
    assert_int_equal(run(tuner, 8), cases[i].ran);
    assert_int_equal(run(tuner, 1024), cases[i].ran);
    assert_int_equal(run(tuner, 8), cases[i].ran);
    tuner_close(tuner);
  }
  struct tuner *tuner = open_calibration(job_host, small, "ring.ll");
  assert_int_equal(run(tuner, 2 << 20), PROFILE_TREE * 1000 + PROFILE_LL * 100); /* hopeless */
  tuner_close(tuner);
}

TEST(log_says_what_was_open) {
  struct tuner *tuner = open_calibration(job_host, small, "ring.simple");
  for (int k = 0; k < 3; k++) {
    run(tuner, 1024);
  }
  run(tuner, 2 << 20);
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate topology unknown ."), 1);
  assert_int_equal(
      log_capture_find("calibrate open allreduce 1024 ranks 4 nodes 2 nccl 22907 cells "
                       "tree.ll ring.ll ring.simple ."),
      1);
  assert_int_equal(log_capture_find("calibrate open allreduce 2097152 ranks 4 nodes 2 nccl 22907 "
                                    "cells tree.ll ring.simple ."),
                   1);
  assert_int_equal(log_capture_find("calibrate open"), 2);
  assert_int_equal(log_capture_find("unsteady"), 0);
}

static void *run_often(void *tuner) {
  for (uint64_t bytes = 8; bytes <= 4096; bytes *= 2) {
    run(tuner, bytes);
  }
  return NULL;
}

TEST(threads_tell_a_size_once) {
  struct tuner *tuner = open_calibration(job_host, small, "default");
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, run_often, tuner);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate open"), 10);
}

TEST(an_offer_that_changes_is_told) {
  struct tuner *tuner = open_calibration(job_host, small, "default");
  for (int k = 0; k < 3; k++) {
    struct offer offer =
        k == 0 ? offer_of(10.0f, -1.0f, -1.0f, -1.0f) : offer_of(-1.0f, 10.0f, -1.0f, -1.0f);
    int channels = 0;
    tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, 8, offer_costs(&offer), &channels);
  }
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate unsteady allreduce 8 ."), 1);
}

TEST(elsewhere_nothing_is_calibrated) {
  static const struct {
    struct tuner_host host;
    struct tuner_shape shape;
    const char *plan;
  } cases[] = {
    { { 5, 22907, NET_USE_OTHER }, { 4, 1, false }, "ring.ll" },
    { { 5, 22907, NET_USE_OTHER }, { 5, 2, false }, "ring.ll" },
    { { 5, 22907, NET_USE_OTHER }, { 4, 2, true }, "ring.ll" },
    { { 2, 22105, NET_USE_OTHER }, { 4, 2, false }, "ring.ll" },
    { { 5, 22907, NET_USE_OTHER }, { 4, 2, false }, "ring.best" },
    { { 5, 22907, NET_USE_OTHER }, { 4, 2, false }, "" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct tuner *tuner = open_calibration(cases[i].host, cases[i].shape, cases[i].plan);
    for (int k = 0; k < 12; k++) {
      assert_int_equal(run(tuner, 8), PROFILE_TREE * 1000 + PROFILE_LL * 100);
    }
    tuner_close(tuner);
  }
  assert_int_equal(log_capture_find("ring.best is neither"), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1); /* once per process */
}
