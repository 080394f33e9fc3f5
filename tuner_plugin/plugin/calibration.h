/* SPDX-License-Identifier: Apache-2.0 */
/* calibration: with STRATUS_CALIBRATE: a communicator whose calls all use one cell, or NCCL's own
 * choice ("default"), instead of a profile. Owns: the sizes that were called.  Threads: any; one
 * lock.  Blocks: on that lock; the first call of each size logs.  Fails: open returns NULL, with
 * one WARN for what is no cell: all calls are then NCCL's own choice, on every rank, as all have
 * the same text.
 *
 * stratus calibrate learns from these lines of NCCL's log, which every rank writes, what a size may
 * use and has used:
 *
 *   calibrate topology 0d5fc02a91e7 .
 *   calibrate open allreduce 4194304 ranks 16 nodes 2 nccl 22907 cells ring.simple tree.ll .
 *   calibrate unsteady allreduce 4194304 .
 *
 * NCCL's own choice comes first, and a full stop ends a complete line. The last one tells that NCCL
 * offered other cells to a later call. */
#ifndef TUNER_PLUGIN_PLUGIN_CALIBRATION_H
#define TUNER_PLUGIN_PLUGIN_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/plugin/tuner.h"

struct calibration;

struct calibration *calibration_open(const char *what, struct tuner_host host,
                                     struct tuner_shape shape);
void calibration_close(struct calibration *calibration);

/* Makes the cell the cheapest, if it is open to the call; true if it is not NCCL's own choice. */
bool calibration_choose(struct calibration *calibration, int coll, size_t bytes,
                        struct decide_costs costs, int *channels);

#endif
