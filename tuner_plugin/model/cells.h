/* SPDX-License-Identifier: Apache-2.0 */
/* cells: every cell of every collective, by a number, for loops over all of them. PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TUNER_PLUGIN_MODEL_CELLS_H
#define TUNER_PLUGIN_MODEL_CELLS_H

#include "common/profile.h"

enum { CELLS_COUNT = PROFILE_COLLECTIVE_COUNT * PROFILE_ALGORITHM_COUNT * PROFILE_PROTOCOL_COUNT };

static inline enum profile_collective cells_collective(int number) {
  return (enum profile_collective)(number / PROFILE_PROTOCOL_COUNT / PROFILE_ALGORITHM_COUNT);
}

static inline enum profile_algorithm cells_algorithm(int number) {
  return (enum profile_algorithm)(number / PROFILE_PROTOCOL_COUNT % PROFILE_ALGORITHM_COUNT);
}

static inline enum profile_protocol cells_protocol(int number) {
  return (enum profile_protocol)(number % PROFILE_PROTOCOL_COUNT);
}

#endif
