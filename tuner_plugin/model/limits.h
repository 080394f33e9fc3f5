/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the fit, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef TUNER_PLUGIN_MODEL_LIMITS_H
#define TUNER_PLUGIN_MODEL_LIMITS_H

#include "tuner_plugin/decide/limits.h"

/* ---- estimates ---- */

/* Noise of samples that have none; a share. */
#define ESTIMATES_UNKNOWN_NOISE 0.05

/* ---- fit ---- */

/* A channel that gains less than this is left to the application's own kernels. */
#define FIT_CHANNEL_GAIN 1.02
/* Beyond its last measured size a row ends where the gain, a straight line to the next size, falls
 * below this: times jump between sizes. Of 1000 invented clusters (test_fit), with 0.03, 0.06 and
 * this 110, 72 and 42 of some 37,000 choices are slower by 3 % than NCCL's. */
#define FIT_REACH_GAIN 0.10
/* Share of the way to the next size, at most: with 0.5 instead the mean time is 0.6 % longer. */
#define FIT_REACH_MOST 0.9

#endif
