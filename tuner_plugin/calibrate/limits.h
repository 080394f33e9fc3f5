/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of calibration, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef TUNER_PLUGIN_CALIBRATE_LIMITS_H
#define TUNER_PLUGIN_CALIBRATE_LIMITS_H

/* Collectives with a size, of a launch; numbers of channels. */
#define CALIBRATE_SIZES_MAX 512
#define CALIBRATE_CHANNELS_MAX 8
/* LL is not tried above; it sends everything twice, in tiny chunks. */
#define CALIBRATE_LL_BYTES (1 << 20)
/* Nor cells with more than so many times the cost of NCCL's choice: on clouds NCCL's table is wrong
 * by a factor of up to 2, and a margin of 2 more is left. */
#define CALIBRATE_COST_FACTOR 4

#endif
