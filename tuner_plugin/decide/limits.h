/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the tuner's decisions and of calibration, with its unit and the
 * evidence for it. Where none is given a value is not measured by itself: chosen by reasoning, and
 * part of what was measured as a whole. */
#ifndef TUNER_PLUGIN_DECIDE_LIMITS_H
#define TUNER_PLUGIN_DECIDE_LIMITS_H

/* ---- guard ---- */

/* NCCL multiplies the cost of rings that would lose fp8 precision by 1024, so that only a call with
 * nothing else gets one (NVIDIA/nccl v2.30.7-1 src/enqueue.cc:2015-2021). Tuners do not get the
 * datatype, but a factor this large between two cells reveals that case. Real costs of two usable
 * cells never differ that much, so the same rule also rejects cells that NCCL considers absurd. */
#define GUARD_COST_RATIO 256.0
/* A smaller gain does not justify the risk of a wrong choice. */
#define GUARD_GAIN_PERMILLE 30

/* ---- collnet_range ---- */

/* LEAST, and MOST where CollNet sends no fewer bytes: docs/measurements.md has the sweeps. */
#define COLLNET_RANGE_LEAST_BYTES (32u << 10)
#define COLLNET_RANGE_MOST_ONE_GPU_BYTES (128u << 10)
#define COLLNET_RANGE_MOST_TWO_HOSTS_BYTES (16u << 20)

/* ---- calibration ---- */

/* Collectives with a size, of a launch; numbers of channels. */
#define CALIBRATE_SIZES_MAX 512
#define CALIBRATE_CHANNELS_MAX 8
/* LL is not tried above; it sends everything twice, in tiny chunks. */
#define CALIBRATE_LL_BYTES (1 << 20)
/* Nor cells with more than so many times the cost of NCCL's choice: on clouds NCCL's table is wrong
 * by a factor of up to 2, and a margin of 2 more is left. */
#define CALIBRATE_COST_FACTOR 4

#endif
