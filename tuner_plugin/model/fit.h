/* SPDX-License-Identifier: Apache-2.0 */
/* fit: samples -> the tables of a profile.
 * Owns: nothing; the profile is the caller's to free.  Threads: any, on different profiles.
 * Blocks: never.  Fails: -ENOMEM; -EINVAL if nothing can be compared, with the reason.
 *
 * Where a cell was measured to be better than NCCL's default by more than the guard asks for
 * (tuner_plugin/decide/decide.h), and at neighbouring sizes as well, there is a row;
 * otherwise there is none. A row reaches beyond its measured sizes as far as the gain is likely to
 * last, and not beyond the smallest and the largest of all. */
#ifndef TUNER_PLUGIN_MODEL_FIT_H
#define TUNER_PLUGIN_MODEL_FIT_H

#include <stddef.h>

#include "common/profile.h"
#include "tuner_plugin/model/sample_file.h"

struct fit_counts {
  size_t shapes; /* collectives on some nodes with some ranks, with a default to compare with */
  size_t points; /* measured sizes of these */
  size_t won;    /* of the points, those in a row */
  size_t rows;
};

/* Adds tables to `profile`, which has none. */
int fit_profile(const struct sample *samples, size_t count, struct profile *profile,
                struct fit_counts *counts, struct profile_error *error);

#endif
