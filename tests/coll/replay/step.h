/* SPDX-License-Identifier: Apache-2.0 */
/* step: runs a workload's step on a GPU: a stream for compute, one for what each group exchanges.
 * Owns: streams, events, and the communicators of stages and copies.
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

#include "tests/coll/job.h"
#include "tests/coll/measure.h"
#include "tests/coll/replay/replay.h"

struct step;

struct step *step_open(struct job *job, const struct replay_part *part);
void step_close(struct step *step);

/* One step, from its first item until everything is done; without communication only compute. */
void step_run(struct step *step, bool has_communication);

/* Runs every collective and exchange by itself, options->checks times, with data that is checked.
 * `result`, which is empty, gets what is wrong over all ranks. */
void step_check(struct step *step, struct measure_result *result);

#endif
