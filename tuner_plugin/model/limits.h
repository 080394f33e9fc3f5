/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the fit, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef TUNER_PLUGIN_MODEL_LIMITS_H
#define TUNER_PLUGIN_MODEL_LIMITS_H

#include "tuner_plugin/decide/limits.h"

/* ---- curves ---- */

/* Noise of samples that have none; a share. */
#define CURVES_UNKNOWN_NOISE 0.05
/* A time falls as bytes grow, and not by chance, by more than this share, and so many errors. */
#define CURVES_FALL_SHARE 0.05
#define CURVES_FALL_ERRORS 4

/* ---- pick_winner ---- */

/* The smallest gain that counts. */
#define PICK_WINNER_LEAST_GAIN (GUARD_GAIN_PERMILLE / 1000.0)
/* A channel that gains less than this is left to the application's own kernels. */
#define PICK_WINNER_CHANNEL_GAIN 1.02
/* Errors of neighbouring sizes of one launch are correlated, so their mean has this many times the
 * error. */
#define PICK_WINNER_LAUNCH_PART 1.3
/* Between measured sizes a time may jump, as NCCL changes channels, chunks and threads there: by so
 * much of what it rises in all, and no more than for a time that doubles. Where it does not rise
 * nothing jumps. */
#define PICK_WINNER_JUMP_SHARE 0.075
#define PICK_WINNER_JUMP_MOST 0.05
/* If the sizes around lie on a smooth curve the risk is smaller, but never zero. A size that gains
 * more than its neighbours predict also shows that the curve is not smooth, but does less harm. */
#define PICK_WINNER_JUMP_LEAST 0.01
#define PICK_WINNER_SURPRISE_SHARE 0.3

/* ---- fit ---- */

/* Places examined from one measured size to the next. */
#define FIT_STEPS_PER_SIZE 4

#endif
