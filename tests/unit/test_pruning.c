/* SPDX-License-Identifier: Apache-2.0 */
/* race: cells leave when they are behind by more than launches differ, and not before. */
#include <math.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/tools/calibrate/pruning.h"

enum { CELLS = 5 }; /* the first is NCCL's own choice */

static struct pruning pruning;

static int set_up(void **state) {
  (void)state;
  pruning = (struct pruning){ 0 };
  return 0;
}

/* 0: not measured. */
static void take(const double us[CELLS]) {
  struct label_times times = { .count = CELLS };
  for (size_t i = 0; i < CELLS; i++) {
    times.cells[i] = (struct label_cell){ .cell = { .channels = (uint16_t)i },
                                          .summary = { .median_us = us[i] } };
  }
  pruning_add(&pruning, &times);
}

/* The cells in the race, as in "12". */
static void assert_contested(const char *expected) {
  size_t kept[SCHEDULE_CELLS_MAX], count = pruning_kept(&pruning, kept);
  char text[SCHEDULE_CELLS_MAX + 1] = "";
  for (size_t i = 0; i < count; i++) {
    text[i] = (char)('0' + pruning.cells[kept[i]].cell.channels);
  }
  assert_string_equal(text, expected);
}

UNIT_TEST_WITH(one_launch_rules_out_what_is_far_behind, set_up, NULL) {
  assert_contested("");
  take((double[]){ 100, 120, 95, 150, 110 });
  assert_contested("241");
}

/* In a launch the ratios are right to 1 %, and from one to the next they differ by 10 %. */
UNIT_TEST_WITH(launches_that_differ_leave_more_in_the_race, set_up, NULL) {
  take((double[]){ 100, 112, 98, 124, 140 });
  take((double[]){ 100, 92, 110, 104, 120 });
  assert_contested("123");
  for (int i = 0; i < 40; i++) {
    bool is_odd = i % 2 == 1;
    take((double[]){ 100, is_odd ? 112 : 92, is_odd ? 98 : 110, is_odd ? 124 : 104, 0 });
  }
  assert_contested("12");
}

UNIT_TEST_WITH(launches_that_agree_decide_soon, set_up, NULL) {
  take((double[]){ 100, 90, 93, 100, 99 });
  assert_contested("1243");
  take((double[]){ 100, 90, 93, 100, 99 });
  assert_contested("12");
}

/* It is one of those that race, though not among the cells. */
UNIT_TEST_WITH(the_usual_choice_may_win, set_up, NULL) {
  take((double[]){ 100, 155, 160, 170, 180 });
  assert_contested("");
  take((double[]){ 0, 50, 50, 50, 50 }); /* says nothing */
  assert_contested("");
}

/* A machine in another hour is twice as slow: only what is measured together is compared. */
UNIT_TEST_WITH(launches_are_compared_by_the_usual_choice, set_up, NULL) {
  take((double[]){ 100, 90, 100, 100, 0 });
  take((double[]){ 200, 180, 200, 200, 220 });
  assert_contested("14");
}

UNIT_TEST_WITH(more_cells_than_there_is_room_for_are_left_out, set_up, NULL) {
  struct label_times times = { .count = SCHEDULE_CELLS_MAX };
  for (int launch = 0; launch < 2; launch++) {
    for (size_t i = 0; i < SCHEDULE_CELLS_MAX; i++) {
      uint16_t channels = (uint16_t)(i + 20 * (size_t)launch);
      times.cells[i] =
          (struct label_cell){ .cell = { .channels = channels }, .summary = { .median_us = 100 } };
    }
    pruning_add(&pruning, &times);
  }
  assert_int_equal(pruning.count, SCHEDULE_CELLS_MAX);
}

UNIT_MAIN(NULL, NULL)
