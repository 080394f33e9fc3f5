/* SPDX-License-Identifier: Apache-2.0 */
/* ab_test: alternating runs with and without a profile: what is slower, and which rows to remove.
 * Owns: the points of a struct ab_test, until ab_test_free.  Threads: the main thread.
 * Blocks: never.  Fails: ab_test_add, -ENOMEM. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_AB_TEST_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_AB_TEST_H

#include "tuner_plugin/tools/calibrate/bench_json.h"

enum { AB_TEST_ROUNDS_MAX = 99 };

struct ab_test_point {
  enum profile_collective collective;
  uint64_t bytes;
  double runs_us[2][AB_TEST_ROUNDS_MAX]; /* of each run: NCCL's choice, the profile's */
  size_t run_count[2];
  /* Since ab_test_judge: */
  double default_us, profile_us; /* medians over the runs */
  double ratio;                  /* profile_us / default_us: below 1 is faster */
  double tolerance; /* 3 %, or twice the scatter of runs of one side, here or at most sizes of the
                       collective, if that is more */
  bool is_slower, is_faster; /* by more than that */
  bool is_chosen;            /* a row of the profile covers it */
};

struct ab_test {
  struct ab_test_point *points; /* in the order in which they came */
  size_t count;
  uint64_t wrong; /* values */
};

/* One run's row. */
int ab_test_add(struct ab_test *test, const struct bench_json_row *row, bool is_profile);

void ab_test_judge(struct ab_test *test, const struct profile *profile, uint32_t nodes,
                   uint32_t ppn);

/* Removes from the profile's tables for this shape the parts of rows around points that are slower,
 * or that are over 10 % slower but within their noise, and rows without a gain over all their
 * points. Rows without a point stay. Returns how many were removed or cut. */
size_t ab_test_drop_rows(const struct ab_test *test, struct profile *profile, uint32_t nodes,
                         uint32_t ppn);

struct ab_test_sums {
  size_t faster, slower; /* of the sizes that a row covers */
  double control;        /* by how much the sides differ at most where both are NCCL's own choice */
  double geomean;        /* of the ratios */
};
struct ab_test_sums ab_test_sum(const struct ab_test *test);
void ab_test_free(struct ab_test *test);

#endif
