/* SPDX-License-Identifier: Apache-2.0 */
/* launch_plan: which launch of a campaign each size of one collective needs next.
 * Owns: nothing.  Threads: the main thread.  Blocks: never.
 * Fails: cannot; a size that a launch has no results for needs it again in the next campaign.
 *
 *   launch 1          every cell
 *   2 to `rounds`     the cells not yet pruned, see below
 *
 * All state is in the samples, so an interrupted campaign continues where it ended: each sample has
 * the number of its launch at the end of its run's name. Only cells without any counted call have
 * no sample; they are pruned.
 *
 * A launch measures what pruning_kept keeps of a size, and the fastest cells of sizes close by: a
 * job's sizes lie between the measured ones, and to decide where a cell stops being the best one
 * takes as many launches at the next size as at this one. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_PLAN_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_PLAN_H

#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/tools/calibrate/pruning.h"

enum { LAUNCH_PLAN_CLOSE = 4 }; /* sizes up to this many times larger or smaller are close by */

struct launch_plan_size {
  uint64_t bytes;
  int64_t launch; /* the last one that measured it; 0: none */
  struct pruning pruning;
  struct plan_entry contested; /* the cells not pruned after that launch, the fastest first */
};

struct launch_plan {
  enum profile_collective collective;
  int64_t rounds;
  struct launch_plan_size sizes[PLAN_ENTRIES_MAX];
  size_t count;
};

/* These sizes, of which nothing was measured yet. The fields before `sizes` are the caller's. */
void launch_plan_begin(struct launch_plan *launch_plan, const uint64_t *sizes, size_t count);

/* Adds the results of a launch for one of the sizes. */
void launch_plan_add(struct launch_plan *launch_plan, int64_t launch,
                     const struct label_entry *entry, const struct label_times *times);

/* The same from the samples of an earlier run of the campaign `id`. */
void launch_plan_resume(struct launch_plan *launch_plan, const struct sample_file *file,
                        const char *id);

/* Which launch of the campaign made the samples of `run`; 0: it is none of its launches. */
int64_t launch_plan_launch_of(const char *run, const char *id);
void launch_plan_name_run(const char *id, uint64_t time, int64_t launch, char run[SAMPLE_WORD_MAX]);

/* The sizes of a launch, and what it tries there, appended to the text of a plan. Either may be
 * NULL. Returns how many sizes. */
size_t launch_plan_format(const struct launch_plan *launch_plan, int64_t launch, uint64_t *sizes,
                          char *plan, size_t plan_bytes);

/* How many sizes need some launch. */
size_t launch_plan_count_due(const struct launch_plan *launch_plan);

#endif
