/* SPDX-License-Identifier: Apache-2.0 */
/* course: which launch comes next, told by launches as they end and by the samples they left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/tools/calibrate/launch_plan.h"

#define ID "0a1b2c3d"

enum { CELLS = 3, CALLS = 50, PLAN_BYTES = 8192 };

static const uint64_t sizes[] = { 1 << 20, 64 << 20 };
static struct launch_plan *launch_plan;
static struct sample_file file;
static char plan[PLAN_BYTES];

/* NCCL chooses tree; ring is faster, PAT surely slower. */
static const struct {
  struct schedule_cell cell;
  double us;
} cells[CELLS] = {
  { { PROFILE_TREE, PROFILE_SIMPLE, 0 }, 120 },
  { { PROFILE_RING, PROFILE_SIMPLE, 0 }, 100 },
  { { PROFILE_PAT, PROFILE_SIMPLE, 0 }, 150 },
};

static int set_up(void **state) {
  (void)state;
  launch_plan = calloc(1, sizeof *launch_plan);
  assert_non_null(launch_plan);
  launch_plan->collective = PROFILE_ALLREDUCE;
  launch_plan->rounds = 2;
  launch_plan_begin(launch_plan, sizes, 2);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  free(launch_plan);
  sample_file_free(&file);
  return 0;
}

/* A launch measured the first `count` cells at a size. */
static void leave_samples(const char *id, int64_t launch, uint64_t bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct sample sample = {
      .collective = PROFILE_ALLREDUCE,
      .bytes = bytes,
      .nodes = 2,
      .ppn = 2,
      .algorithm = (enum profile_algorithm)cells[i].cell.algorithm,
      .protocol = (enum profile_protocol)cells[i].cell.protocol,
      .is_default = i == 0,
      .n = CALLS,
      .median_us = cells[i].us,
      .mad_us = 0.5,
    };
    launch_plan_name_run(id, 1795313780 + (uint64_t)launch, launch, sample.run);
    assert_int_equal(sample_file_add(&file, &sample), 0);
  }
}

static void take_times(int64_t launch, uint64_t bytes, const double us[CELLS]) {
  struct label_entry entry = { .collective = PROFILE_ALLREDUCE, .bytes = bytes };
  struct label_times times = { .count = CELLS };
  for (size_t i = 0; i < CELLS; i++) {
    times.cells[i] = (struct label_cell){ cells[i].cell, CALLS, { us[i], 0.5 } };
  }
  launch_plan_add(launch_plan, launch, &entry, &times);
}

static void take_launch(int64_t launch, uint64_t bytes) {
  take_times(launch, bytes, (double[CELLS]){ cells[0].us, cells[1].us, cells[2].us });
}

static const char *plan_of(int64_t launch) {
  uint64_t due[PLAN_ENTRIES_MAX];
  plan[0] = '\0';
  size_t count = launch_plan_format(launch_plan, launch, due, plan, sizeof plan), slashes = 0;
  for (const char *at = plan; (at = strchr(at, '/')); at++) {
    slashes++;
  }
  assert_int_equal(count, slashes);
  return plan;
}

#define RACE "=default,ring.simple"

UNIT_TEST_WITH(launches_follow_each_other, set_up, tear_down) {
  assert_string_equal(plan_of(1), "/allreduce:1048576=all/allreduce:67108864=all");
  assert_string_equal(plan_of(2), "");
  take_launch(1, sizes[1]); /* of the other one its calls could not be told apart */
  assert_string_equal(plan_of(1), "/allreduce:1048576=all");
  assert_string_equal(plan_of(2), "/allreduce:67108864" RACE);
  take_launch(2, sizes[1]);
  assert_string_equal(plan_of(2), "");
  assert_int_equal(launch_plan_count_due(launch_plan), 1);
}

/* Wherever a campaign was interrupted, its samples lead to the same plans. */
UNIT_TEST_WITH(samples_tell_the_same, set_up, tear_down) {
  for (int64_t done = 0; done <= 2; done++) {
    char expected[3][PLAN_BYTES];
    sample_file_free(&file);
    launch_plan_begin(launch_plan, sizes, 2);
    for (int64_t launch = 1; launch <= done; launch++) {
      leave_samples(ID, launch, sizes[1], CELLS);
      take_launch(launch, sizes[1]);
    }
    for (int64_t launch = 1; launch <= 2; launch++) {
      strcpy(expected[launch], plan_of(launch));
    }
    launch_plan_begin(launch_plan, sizes, 2);
    launch_plan_resume(launch_plan, &file, ID);
    for (int64_t launch = 1; launch <= 2; launch++) {
      assert_string_equal(plan_of(launch), expected[launch]);
    }
    assert_int_equal(launch_plan_count_due(launch_plan), done < 2 ? 2 : 1);
  }
}

UNIT_TEST_WITH(what_is_decided_is_not_measured_again, set_up, tear_down) {
  leave_samples(ID, 1, sizes[0], CELLS);
  leave_samples(ID, 1, sizes[1], 1); /* nothing but NCCL's own choice was open */
  launch_plan_resume(launch_plan, &file, ID);
  assert_string_equal(plan_of(1), "");
  assert_string_equal(plan_of(2), "/allreduce:1048576" RACE);
}

/* What wins at 2M stays in the race at 8M, where it has lost, but not at 16M. */
UNIT_TEST_WITH(sizes_close_by_share_their_fastest, set_up, tear_down) {
  const uint64_t ladder[] = { 2 << 20, 8 << 20, 16 << 20 };
  launch_plan_begin(launch_plan, ladder, 3);
  take_times(1, ladder[0], (double[]){ 120, 150, 100 });
  take_times(1, ladder[1], (double[]){ 120, 100, 150 });
  take_times(1, ladder[2], (double[]){ 120, 100, 150 });
  assert_string_equal(plan_of(2), "/allreduce:2097152=default,pat.simple,ring.simple"
                                  "/allreduce:8388608=default,ring.simple,pat.simple"
                                  "/allreduce:16777216=default,ring.simple");
  assert_string_equal(plan_of(1), "");
}

/* A cell that NCCL rules out at a size is not tried there, whatever it does close by. */
UNIT_TEST_WITH(what_was_not_open_is_not_shared, set_up, tear_down) {
  launch_plan_begin(launch_plan, (uint64_t[]){ 1 << 20, 2 << 20 }, 2);
  leave_samples(ID, 1, 1 << 20, 2);
  launch_plan_resume(launch_plan, &file, ID);
  take_times(1, 2 << 20, (double[]){ 120, 150, 100 });
  assert_string_equal(plan_of(2), "/allreduce:1048576" RACE
                                  "/allreduce:2097152=default,pat.simple,ring.simple");
}

/* A launch of few calls may count none of NCCL's own choice: nothing is known then. */
UNIT_TEST_WITH(without_the_usual_choice_all_is_tried_again, set_up, tear_down) {
  launch_plan_begin(launch_plan, sizes, 1);
  take_times(1, sizes[0], (double[]){ 0, 100, 150 });
  assert_string_equal(plan_of(2), "/allreduce:1048576=all");
  take_times(2, sizes[0], (double[]){ 120, 100, 150 });
  assert_string_equal(plan_of(2), "");
}

UNIT_TEST_WITH(samples_of_others_tell_nothing, set_up, tear_down) {
  leave_samples("0a1b2c3e", 1, sizes[0], CELLS);
  leave_samples(ID "4", 1, sizes[0], CELLS);
  leave_samples(ID, 1, 4096, CELLS);
  launch_plan->collective = PROFILE_REDUCE;
  leave_samples(ID, 1, sizes[0], CELLS);
  launch_plan_resume(launch_plan, &file, ID);
  assert_int_equal(launch_plan_count_due(launch_plan), 2);
  char run[SAMPLE_WORD_MAX];
  launch_plan_name_run(ID, 1795313780, 12, run);
  assert_string_equal(run, ID "-1795313780-12");
  assert_int_equal(launch_plan_launch_of(run, ID), 12);
  assert_int_equal(launch_plan_launch_of(ID "-12", ID), 0);
  assert_int_equal(launch_plan_launch_of(ID, ID), 0);
  assert_int_equal(launch_plan_launch_of("", ID), 0);
}

UNIT_MAIN(NULL, NULL)
