/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of calibration, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef TUNER_PLUGIN_CALIBRATE_LIMITS_H
#define TUNER_PLUGIN_CALIBRATE_LIMITS_H

/* Cells of one collective and size. */
#define SCHEDULE_CELLS_MAX 32
/* Enough for a run, if that is fewer calls; a quarter at least. */
#define SCHEDULE_RUN_BYTES (16 << 20)

/* Of a plan: collectives with a size; numbers of channels; calls in a row with the same cell, where
 * the plan does not say, and at most. */
#define PLAN_ENTRIES_MAX 512
#define PLAN_CHANNELS_MAX 8
#define PLAN_RUN 12
#define PLAN_RUN_MAX 1000
/* LL is not tried above; it sends everything twice, in tiny chunks. */
#define PLAN_LL_BYTES (1 << 20)
/* Nor cells with more than so many times the cost of NCCL's choice: on clouds NCCL's table is wrong
 * by a factor of up to 2, and a margin of 2 more is left. */
#define PLAN_COST_FACTOR 4

#endif
