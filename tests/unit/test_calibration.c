/* SPDX-License-Identifier: Apache-2.0 */
/* calibration: ranks whose calls come in different orders choose alike; what is written in the log;
 * nothing is calibrated without STRATUS_CALIBRATE. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/plugin/calibration.h"
#include "tuner_plugin/plugin/tuner.h"

enum { ALGOS = 7, PROTOS = 3, SIZES = 5, CALLS = 40, NONE = -1 };

static const struct tuner_host host = { .abi_version = 5, .nccl_version = 22907 };
static const struct tuner_shape shape = { .ranks = 4, .nodes = 2 };
static const uint64_t sizes[SIZES] = { 8, 1024, 65536, 1 << 20, 12345 }; /* the last: no plan */

#define PLAN "seed=3/channels=0,1/allreduce:8,1K,64K,1M"

static int set_up(void **state) {
  (void)state;
  log_capture_start();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  log_capture_stop();
  return 0;
}

static struct tuner *open_tuner(struct tuner_host as, struct tuner_shape of, const char *plan) {
  static char text[256];
  snprintf(text, sizeof text, "STRATUS_CALIBRATE=%s", plan);
  char *environment[] = { text, NULL };
  param_load(environment);
  sysfs_process_root = "/nowhere";
  struct tuner *tuner = tuner_open(as, of);
  assert_non_null(tuner);
  return tuner;
}

/* One call; what a rank would run, as algorithm * 1000 + protocol * 100 + channels. */
static int call(struct tuner *tuner, uint64_t bytes) {
  float us[ALGOS][PROTOS];
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    us[cell / PROTOS][cell % PROTOS] = -1.0f;
  }
  us[PROFILE_TREE][PROFILE_LL] = 10.0f;
  us[PROFILE_RING][PROFILE_SIMPLE] = 20.0f;
  us[PROFILE_RING][PROFILE_LL] = 12.0f;
  struct decide_costs costs = { .us = &us[0][0], .algos = ALGOS, .protos = PROTOS };
  int channels = 0, best = NONE;
  tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, bytes, costs, &channels);
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    float cost = us[cell / PROTOS][cell % PROTOS];
    if (cost >= 0 && (best == NONE || cost < us[best / PROTOS][best % PROTOS])) {
      best = cell;
    }
  }
  return best / PROTOS * 1000 + best % PROTOS * 100 + channels;
}

/* What a rank chose for the k-th call of each size. */
struct choices {
  int of[SIZES][CALLS];
};

static void run_rank(struct choices *choices, unsigned order) {
  struct tuner *tuner = open_tuner(host, shape, PLAN);
  int done[SIZES] = { 0 };
  for (int left = SIZES * CALLS; left > 0; left--) {
    int size = (int)(order % SIZES);
    order = order * 1103515245u + 12345u;
    while (done[size] == CALLS) {
      size = (size + 1) % SIZES;
    }
    choices->of[size][done[size]++] = call(tuner, sizes[size]);
  }
  tuner_close(tuner);
}

/* A divergence is a hang: two ranks, one in Ring and one in Tree, wait for each other for ever. */
UNIT_TEST_WITH(orders_of_other_calls_change_nothing, set_up, tear_down) {
  static struct choices first, other;
  run_rank(&first, 1);
  for (unsigned order = 2; order < 20; order++) {
    run_rank(&other, order * 7919u);
    assert_memory_equal(&first, &other, sizeof first);
  }
  bool is_varied = false;
  for (int k = 0; k < CALLS; k++) {
    is_varied |= first.of[0][k] != first.of[0][0];
    assert_int_equal(first.of[SIZES - 1][k], PROFILE_TREE * 1000 + PROFILE_LL * 100);
  }
  assert_true(is_varied);
}

struct worker {
  struct tuner *tuner;
  int counts[8000];
};

static void *call_often(void *argument) {
  struct worker *worker = argument;
  for (int k = 0; k < 1200; k++) {
    worker->counts[call(worker->tuner, 8)]++;
  }
  return NULL;
}

/* Two threads on one communicator lose no call: every cell comes equally often. */
UNIT_TEST_WITH(threads_lose_no_call, set_up, tear_down) {
  struct tuner *tuner = open_tuner(host, shape, "run=1/channels=0/allreduce:8");
  static struct worker workers[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    memset(&workers[i], 0, sizeof workers[i]);
    workers[i].tuner = tuner;
    pthread_create(&threads[i], NULL, call_often, &workers[i]);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
  static const int cells[] = { PROFILE_TREE * 1000 + PROFILE_LL * 100,
                               PROFILE_RING * 1000 + PROFILE_LL * 100,
                               PROFILE_RING * 1000 + PROFILE_SIMPLE * 100 };
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(workers[0].counts[cells[i]] + workers[1].counts[cells[i]], 800);
  }
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate end allreduce 8 calls 2400 ."), 1);
  assert_int_equal(log_capture_find("calibrate topology unknown ."), 1);
}

UNIT_TEST_WITH(log_says_what_was_open, set_up, tear_down) {
  struct tuner *tuner = open_tuner(host, shape, PLAN);
  for (int k = 0; k < 3; k++) {
    call(tuner, 1024);
  }
  call(tuner, 77);
  tuner_close(tuner);
  assert_int_equal(
      log_capture_find("calibrate open allreduce 1024 ranks 4 nodes 2 nccl 22907 cells "
                       "tree.ll ring.ll ring.simple tree.ll@1 ring.ll@1 "
                       "ring.simple@1 ."),
      1);
  assert_int_equal(log_capture_find("calibrate open"), 1);
  assert_int_equal(log_capture_find("calibrate end allreduce 1024 calls 3 ."), 1);
  assert_int_equal(log_capture_find("calibrate end"), 1);
}

UNIT_TEST_WITH(an_offer_that_changes_is_told, set_up, tear_down) {
  struct tuner *tuner = open_tuner(host, shape, "allreduce:8");
  float us[ALGOS][PROTOS];
  for (int k = 0; k < 2; k++) {
    for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
      us[cell / PROTOS][cell % PROTOS] = -1.0f;
    }
    us[PROFILE_TREE][k == 0 ? PROFILE_LL : PROFILE_SIMPLE] = 10.0f;
    struct decide_costs costs = { .us = &us[0][0], .algos = ALGOS, .protos = PROTOS };
    int channels = 0;
    tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, 8, costs, &channels);
  }
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate end allreduce 8 unsteady"), 1);
}

UNIT_TEST_WITH(elsewhere_nothing_is_calibrated, set_up, tear_down) {
  static const struct {
    struct tuner_host host;
    struct tuner_shape shape;
    const char *plan;
  } cases[] = {
    { { 5, 22907, NET_USE_OTHER }, { 4, 1, false }, PLAN },
    { { 5, 22907, NET_USE_OTHER }, { 5, 2, false }, PLAN },
    { { 5, 22907, NET_USE_OTHER }, { 4, 2, true }, PLAN },
    { { 2, 22105, NET_USE_OTHER }, { 4, 2, false }, PLAN },
    { { 5, 22907, NET_USE_OTHER }, { 4, 2, false }, "allreduce:best" },
    { { 5, 22907, NET_USE_OTHER }, { 4, 2, false }, "" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct tuner *tuner = open_tuner(cases[i].host, cases[i].shape, cases[i].plan);
    for (int k = 0; k < 12; k++) {
      assert_int_equal(call(tuner, 8), PROFILE_TREE * 1000 + PROFILE_LL * 100);
    }
    tuner_close(tuner);
  }
  assert_int_equal(log_capture_find("not \"best\""), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1); /* once per process */
}

UNIT_MAIN(NULL, NULL)
