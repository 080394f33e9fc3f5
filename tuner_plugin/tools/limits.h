/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of stratus, with its unit and the evidence for it. Where none
 * is given a value is not measured by itself: chosen by reasoning, and part of what was measured as
 * a whole. */
#ifndef TUNER_PLUGIN_TOOLS_LIMITS_H
#define TUNER_PLUGIN_TOOLS_LIMITS_H

/* ---- calibrate ---- */

/* For the time that is told before anything was measured: of a call, of its bytes, and to start and
 * end the ranks of a launch, of the order of what a cloud of 25 Gb/s gives; and cells beside NCCL's
 * own choice: of AllReduce by Ring and Tree with three protocols. */
#define CALIBRATE_ASSUMED_US 200.0
#define CALIBRATE_ASSUMED_GBS 1.0
#define CALIBRATE_START_S 10.0
#define CALIBRATE_ASSUMED_CELLS 5

/* ---- verify ---- */

/* Shares of a time. */
#define AB_TEST_LEAST_TOLERANCE 0.03
#define AB_TEST_MOST_DOUBT 0.10
/* Errors of a launch are correlated between neighbouring sizes: in launches of four emulated hosts
 * the errors of sizes next to each other correlate by 0.2 to 0.6, of those two apart by half of
 * that, and so on. With 0.4 to the power of their distance, the mean of many errs by sqrt((1 + 0.4)
 * / (1 - 0.4)) times what it would if they were independent. */
#define AB_TEST_LAUNCH_PART 1.53

/* ---- stratus compare ---- */

/* Two runs that differ by less are the same: about what runs of one setting differ by. Not
 * measured by itself. */
#define COMPARE_SAME 0.03
/* nccl-tests' lines have 250 bytes at most, and launchers write before them. */
#define COMPARE_LINE_MAX 4096
/* A file that is something else has a remark for each line. */
#define COMPARE_NOTES_MAX 8

#endif
