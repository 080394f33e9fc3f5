/* SPDX-License-Identifier: Apache-2.0 */
/* calibration: STRATUS_MODE=calibrate: a communicator whose calls follow a plan instead of a
 * profile. Owns: the plan and the counts of one communicator's calls.  Threads: any; one lock.
 * Blocks: on that lock; the first call of each size logs.  Fails: open, NULL, with one WARN for a
 * bad plan: the calls are then NCCL's own, on every rank, as all have the same plan.
 *
 * stratus-tune calibrate labels the calls from these lines of NCCL's log, which every rank writes:
 *
 *   calibrate topology 0d5fc02a91e7 .
 *   calibrate open allreduce 4194304 ranks 16 nodes 2 nccl 22907 cells ring.simple tree.ll .
 *   calibrate chunks allreduce 4194304 8:2097152 - .
 *   calibrate end allreduce 4194304 calls 45 .
 *
 * with NCCL's own choice first, and a full stop at the end of what is complete; "unsteady" instead
 * of the number of calls where NCCL's offer changed on the way. The line of chunks comes only with
 * interface v6: for each cell how many channels NCCL used and the chunk it took by itself. */
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

/* The chunk of the cell that the newest call got, for what one channel carries, or 0: NCCL's own,
 * which is `chunk`. NCCL asks after it has asked for the cell, and all ranks of a communicator make
 * their calls in the same order, so that they get the same answers. */
uint32_t calibration_choose_chunk(struct calibration *calibration, int coll, size_t bytes, int algo,
                                  int proto, int channels, size_t chunk);

#endif
