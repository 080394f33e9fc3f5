/* SPDX-License-Identifier: Apache-2.0 */
/* calibration: with STRATUS_CALIBRATE: a communicator whose calls follow a plan instead of a
 * profile. Owns: the plan and the counts of one communicator's calls.  Threads: any; one lock.
 * Blocks: on that lock; the first call of each size logs.  Fails: open returns NULL, with one WARN
 * for a bad plan: all calls are then NCCL's own choice, on every rank, as all have the same plan.
 *
 * stratus calibrate labels the calls from these lines of NCCL's log, which every rank writes:
 *
 *   calibrate topology 0d5fc02a91e7 .
 *   calibrate open allreduce 4194304 ranks 16 nodes 2 nccl 22907 cells ring.simple tree.ll .
 *   calibrate end allreduce 4194304 calls 45 .
 *
 * NCCL's own choice comes first, and a full stop ends a complete line. "unsteady" replaces the
 * number of calls if the cells that NCCL offers changed meanwhile. */
#ifndef TUNER_PLUGIN_PLUGIN_CALIBRATION_H
#define TUNER_PLUGIN_PLUGIN_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/plugin/tuner.h"

struct calibration;

struct calibration *calibration_open(const char *plan, struct tuner_host host,
                                     struct tuner_shape shape);
void calibration_close(struct calibration *calibration);

/* Makes the cell of this call the cheapest; true if it is not NCCL's own choice. */
bool calibration_choose(struct calibration *calibration, int coll, size_t bytes,
                        struct decide_costs costs, int *channels);

#endif
