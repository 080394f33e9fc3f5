/* SPDX-License-Identifier: Apache-2.0 */
/* compare: alternating runs with and without a profile: what is slower, and which rows must go.
 * Owns: the points of a struct compare, until compare_free.  Threads: the main thread.
 * Blocks: never.  Fails: compare_add, -ENOMEM. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_COMPARE_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_COMPARE_H

#include "tuner_plugin/tools/calibrate/bench.h"

enum { COMPARE_ROUNDS_MAX = 99 };

struct compare_point {
  enum profile_collective collective;
  uint64_t bytes;
  double runs_us[2][COMPARE_ROUNDS_MAX]; /* of each run: NCCL's choice, the profile's */
  size_t run_count[2];
  /* Since compare_judge: */
  double default_us, profile_us; /* medians over the runs */
  double ratio;                  /* profile_us / default_us: below 1 is faster */
  double tolerance; /* 3 %, or twice what runs of one side scatter by, here or at most sizes of the
                     * collective, if more */
  bool is_slower, is_faster; /* by more than that */
  bool is_chosen;            /* a row of the profile covers it */
};

struct compare {
  struct compare_point *points; /* in the order in which they came */
  size_t count;
  uint64_t wrong; /* values */
};

/* One run's row; the time of a call is the median of all, or the mean where only that is known. */
int compare_add(struct compare *compare, const struct bench_row *row, bool is_profile);

void compare_judge(struct compare *compare, const struct profile *profile, uint32_t nodes,
                   uint32_t ppn);

/* Takes out of the profile's tables for this shape the parts of rows around points that are slower,
 * or by over 10 % within their noise, and rows that gain nothing over all their points, by these
 * runs and what calibration said, each with the weight of its noise. Rows without a point stay.
 * Returns how many went or became smaller. */
size_t compare_drop_rows(const struct compare *compare, struct profile *profile, uint32_t nodes,
                         uint32_t ppn);

/* Of the sizes that a row covers. */
size_t compare_count_slower(const struct compare *compare);
size_t compare_count_faster(const struct compare *compare);
/* The control: by how much the sides differ at most where both are NCCL's own choice. */
double compare_control(const struct compare *compare);
double compare_geomean(const struct compare *compare); /* of the ratios */
void compare_free(struct compare *compare);

#endif
