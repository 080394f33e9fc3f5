/* SPDX-License-Identifier: Apache-2.0 */
/* pick_winner: which cell wins at one size of a collective, and whether that is certain.
 * Owns: nothing; points into the curves.  Threads: any.  Blocks: never.  Fails: cannot; in doubt
 * NCCL's choice is kept. */
#ifndef TUNER_PLUGIN_MODEL_PICK_WINNER_H
#define TUNER_PLUGIN_MODEL_PICK_WINNER_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/model/curves.h"
#include "tuner_plugin/model/limits.h"

/* One collective on one shape. */
struct candidates {
  const struct curve *by_default;
  const struct curve *others;
  size_t other_count;
};

/* What to do at one size. */
struct answer {
  double bytes;
  const struct curve *winner; /* NULL: leave it to NCCL */
  enum profile_algorithm over_algorithm;
  enum profile_protocol over_protocol;
  bool is_over_any; /* it applies whatever NCCL chooses */
  double default_us, winner_us, noise;
  bool is_measured; /* not interpolated */
  double margin;    /* the gain must be larger by this factor */
};

/* As profiles have them. */
static inline uint64_t pick_winner_ns(double us) {
  return (uint64_t)llround(us * 1000);
}

static inline uint32_t pick_winner_permille(double share) {
  return share < 1 ? (uint32_t)lround(share * 1000) : 1000;
}

/* The gain exceeds the margin and the noise. */
bool pick_winner_is_worth(const struct answer *answer);
/* The factor by which a gain must be larger if it was not measured at this size: covers possible
 * jumps in general, or as far as the sizes around have shown for this winner. 1 at a measured size.
 */
double pick_winner_margin(const struct candidates *candidates, const struct answer *answer);
/* What NCCL chose at the last measured size up to here, or at the first one from here on. */
const struct curve_point *pick_winner_default_point(const struct curve *by_default, double bytes,
                                                    bool is_next);
/* Is point i the measured size itself, or the last one before `bytes`, or the first one behind? */
bool pick_winner_is_near(const struct curve *by_default, size_t i, double bytes);

/* Neither too little nor within its noise. */
bool pick_winner_is_sure(double gain, double noise);
/* Another size's verdict on a winner: AGAINST, it is slower there than the cell that it replaces,
 * or was not measured; OPEN, it is not slower; SURE, it is certainly faster. Whether or not NCCL
 * chooses the replaced cell there. */
enum pick_winner_side { PICK_WINNER_AGAINST, PICK_WINNER_OPEN, PICK_WINNER_SURE };
enum pick_winner_side pick_winner_side_at(const struct candidates *candidates,
                                          const struct answer *answer, uint64_t bytes);

/* What to do at a size if NCCL chooses the same as at a measured one. */
struct answer pick_winner_over(const struct candidates *candidates, double bytes, bool is_measured,
                               const struct curve_point *by_default);
/* What to do at a size. Somewhere between two measured sizes NCCL may change its choice. A row
 * applies over one choice of NCCL's only: it is made for the choice over which more is gained. */
struct answer pick_winner_at(const struct candidates *candidates, double bytes, bool is_measured);

#endif
