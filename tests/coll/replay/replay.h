/* SPDX-License-Identifier: Apache-2.0 */
/* replay: the workloads that --replay names, and the measurement of their training steps: compute
 * alone, steps that are not counted, those that are, and a check of every collective.
 * Owns: workloads, until replay_unload.  Threads: the main thread of every process, all with the
 * same workloads.  Blocks: while files are read, and while the steps run.
 * Fails: replay_load with a message; nothing is loaded then. replay_run ends the process with a
 * message.
 *
 * Per workload two lines on the table:
 *
 *  # resnet50: mean 91.2 ms of 100 steps after 20, compute 72.7 ms, exposed 18.5 ms, 0.03 s of CPU
 *  # resnet50: 5 collectives, 102.228 MB a step; 0 wrong
 *
 * The JSON file has {"format": "stratus-replay", "version": 1, "nccl", "gpu",
 * "hosts", "ranks", "workloads": [{"name", "batch", "compute_scale", "bytes_scale", "collectives",
 * "bytes_per_step", "skipped_steps", "step_us": [...], "compute_us", "exposed_us",
 * "cpu_s_per_step", "wrong"}]}: step_us are the slowest rank's, collectives
 * (with exchanges) and bytes_per_step rank 0's; wrong is null with -c
 * 0. */
#ifndef COLL_REPLAY_REPLAY_H
#define COLL_REPLAY_REPLAY_H

#include <stdio.h>

#include "tests/coll/job.h"
#include "tests/coll/measure.h"
#include "tests/coll/replay/workload.h"

struct replay_part {
  struct workload workload;
  struct workload_sum sum;
};

struct replay {
  struct replay_part *parts; /* in the order of the list */
  size_t part_count;
};

/* With 0 ranks the files are only checked, no plan is made. 0 or a negative errno; `error` has room
 * for WORKLOAD_ERROR_MAX. */
int replay_load(struct replay *replay, const struct options *options, int ranks, char *error);
void replay_unload(struct replay *replay);

/* What the largest collective needs. */
size_t replay_bytes(const struct replay *replay);

/* `table` is NULL but at process 0. Adds up what is wrong, over all ranks: elements, and bytes that
 * were written around results. */
void replay_run(struct job *job, const struct replay *replay, FILE *table, uint64_t *wrong,
                uint64_t *out_of_bounds);

#endif
