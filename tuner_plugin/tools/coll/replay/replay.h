/* SPDX-License-Identifier: Apache-2.0 */
/* replay: measures training steps: compute alone, steps that are not counted, those that are, and a
 * check of every collective.
 * Owns: nothing between calls.  Threads: the main thread of every process, all with the same plans.
 * Blocks: while the steps run.  Fails: ends the process with a message, also if the plan of this
 * process is not that of process 0.
 *
 * Per workload a line on the table, in the format of PyTorch's benchmarks/distributed/ddp, and one
 * with what belongs to it:
 *
 *   resnet50: 2 GPUs -- 2M/2G: p50: 0.091s 351/s p75: 0.092s 348/s p90: ... p95: ...
 *   # resnet50: mean 91.2 ms of 100 steps after 20, compute 72.7 ms, exposed 18.5 ms, 0.031 s of
 * CPU # resnet50: 5 collectives, 102.228 MB a step; 0 wrong
 *
 * where 351/s are samples per second of one rank, and percentiles are those of the steps, each of
 * the slowest rank. The JSON file: docs/workloads.md. */
#ifndef COLL_REPLAY_REPLAY_H
#define COLL_REPLAY_REPLAY_H

#include <stdio.h>

#include "tuner_plugin/tools/coll/job.h"
#include "tuner_plugin/tools/coll/replay/replay_load.h"

/* What the largest collective needs. */
size_t replay_bytes(const struct replay *replay);

/* `table` is NULL but at process 0. Adds up what is wrong, over all ranks: elements, and bytes that
 * were written around results. */
void replay_run(struct job *job, const struct replay *replay, FILE *table, uint64_t *wrong,
                uint64_t *out_of_bounds);

#endif
