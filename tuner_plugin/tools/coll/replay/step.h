/* SPDX-License-Identifier: Apache-2.0 */
/* step: runs a plan on a GPU: a stream for compute, one for the collectives of each group.
 * Owns: streams, events, and the communicators of the workload's groups.
 * Threads: the main thread; compute is slept through on CUDA's thread for host functions.
 * Blocks: step_open while NCCL makes communicators, step_run until the step is done.
 * Fails: ends the process with a message.
 *
 * Compute is a host function that sleeps to a deadline. Deadlines follow from each other, not from
 * when a function was called, until the stream has waited for a collective: so lateness does not
 * add up. */
#ifndef COLL_REPLAY_STEP_H
#define COLL_REPLAY_STEP_H

#include <stdbool.h>

#include "tuner_plugin/tools/coll/job.h"
#include "tuner_plugin/tools/coll/measure.h"
#include "tuner_plugin/tools/coll/replay/replay_load.h"

struct step;

struct step *step_open(struct job *job, const struct replay_part *part);
void step_close(struct step *step);

/* One step, from its first item until everything is done; without collectives only compute. */
void step_run(struct step *step, bool has_collectives);

/* Runs every collective once by itself, with data that is checked as options->checks says. What is
 * wrong, over all ranks, is added to `result`. */
void step_check(struct step *step, struct measure_result *result);

#endif
