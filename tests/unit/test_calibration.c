/* SPDX-License-Identifier: Apache-2.0 */
/* calibration: each call that may gets the cell, what is written in the log, and nothing elsewhere.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/offer.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/plugin/calibration.h"
#include "tuner_plugin/plugin/tuner.h"

static const struct tuner_host host = { .abi_version = 5, .nccl_version = 22907 };
static const struct tuner_shape shape = { .ranks = 4, .nodes = 2 };

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
  struct offer offer = offer_of(10.0f, -1.0f, 12.0f, 20.0f);
  struct decide_costs costs = offer_costs(&offer);
  int channels = 0, best = PROFILE_TREE * PROFILE_PROTOCOL_COUNT + PROFILE_LL;
  tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, bytes, costs, &channels);
  for (int cell = 0; cell < COSTS_CELLS; cell++) {
    best = costs.us[cell] >= 0 && costs.us[cell] < costs.us[best] ? cell : best;
  }
  return best / PROFILE_PROTOCOL_COUNT * 1000 + best % PROFILE_PROTOCOL_COUNT * 100 + channels;
}

LOG_CAPTURE_TEST(every_call_gets_the_cell_if_it_may) {
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
    struct tuner *tuner = open_tuner(host, shape, cases[i].text);
    assert_int_equal(call(tuner, 8), cases[i].ran);
    assert_int_equal(call(tuner, 1024), cases[i].ran);
    assert_int_equal(call(tuner, 8), cases[i].ran);
    tuner_close(tuner);
  }
  struct tuner *tuner = open_tuner(host, shape, "ring.ll");
  assert_int_equal(call(tuner, 2 << 20), PROFILE_TREE * 1000 + PROFILE_LL * 100); /* hopeless */
  tuner_close(tuner);
}

LOG_CAPTURE_TEST(log_says_what_was_open) {
  struct tuner *tuner = open_tuner(host, shape, "ring.simple");
  for (int k = 0; k < 3; k++) {
    call(tuner, 1024);
  }
  call(tuner, 2 << 20);
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

static void *call_often(void *tuner) {
  for (uint64_t bytes = 8; bytes <= 4096; bytes *= 2) {
    call(tuner, bytes);
  }
  return NULL;
}

LOG_CAPTURE_TEST(threads_tell_a_size_once) {
  struct tuner *tuner = open_tuner(host, shape, "default");
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, call_often, tuner);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate open"), 10);
}

LOG_CAPTURE_TEST(an_offer_that_changes_is_told) {
  struct tuner *tuner = open_tuner(host, shape, "default");
  for (int k = 0; k < 3; k++) {
    struct offer offer =
        k == 0 ? offer_of(10.0f, -1.0f, -1.0f, -1.0f) : offer_of(-1.0f, 10.0f, -1.0f, -1.0f);
    int channels = 0;
    tuner_choose_by_costs(tuner, PROFILE_ALLREDUCE, 8, offer_costs(&offer), &channels);
  }
  tuner_close(tuner);
  assert_int_equal(log_capture_find("calibrate unsteady allreduce 8 ."), 1);
}

LOG_CAPTURE_TEST(elsewhere_nothing_is_calibrated) {
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
    struct tuner *tuner = open_tuner(cases[i].host, cases[i].shape, cases[i].plan);
    for (int k = 0; k < 12; k++) {
      assert_int_equal(call(tuner, 8), PROFILE_TREE * 1000 + PROFILE_LL * 100);
    }
    tuner_close(tuner);
  }
  assert_int_equal(log_capture_find("ring.best is neither"), 1);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1); /* once per process */
}
