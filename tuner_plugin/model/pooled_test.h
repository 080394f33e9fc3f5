/* SPDX-License-Identifier: Apache-2.0 */
/* pooled_test: tests cells with a small gain at each of many neighbouring sizes over all of these
 * sizes.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot; in doubt the answer is no.
 *
 * A gain of 5 % at one size is lost in noise of 5 %; at eight sizes in a row it is not. Only
 * launches are independent: the errors of neighbouring sizes within a launch are correlated, so
 * each launch gives one value for a stretch, and the certainty is that of the agreement between
 * launches. */
#ifndef TUNER_PLUGIN_MODEL_POOLED_TEST_H
#define TUNER_PLUGIN_MODEL_POOLED_TEST_H

#include "tuner_plugin/model/curves.h"

/* Errors of a launch are correlated between neighbouring sizes: in launches of four emulated hosts
 * the errors of sizes next to each other correlate by 0.2 to 0.6, of those two apart by half of
 * that, and so on. With 0.4 to the power of their distance, the mean of many errs by sqrt((1 + 0.4)
 * / (1 - 0.4)) times what it would if they were independent. */
#define POOLED_TEST_LAUNCH_PART 1.53

/* The result for the best stretch around a size. */
struct pooled_test {
  const struct curve *winner; /* NULL: there is none */
  double gain;                /* log of NCCL's time over the winner's, in the stretch */
  double noise;               /* twice this is what the gain exceeds, chosen among many as it was */
};

/* Fills in one for each point of `by_default`, from its `other_count` cells. */
void pooled_test_run(const struct curve *by_default, const struct curve *others, size_t other_count,
                     struct pooled_test *found);

#endif
