/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_trials: after the launches that compare algorithms, protocols and channels: which chunk
 * sizes to try in the fastest cells. Measuring one dimension after the other keeps the number of
 * trials small: for each size a few cells, each without and with at most three chunk sizes.
 * Owns: nothing.  Threads: the main thread.  Blocks: never.
 * Fails: cannot; a size whose chunks are unknown has nothing to try. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_CHUNK_TRIALS_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_CHUNK_TRIALS_H

#include "tuner_plugin/calibrate/chunks.h"
#include "tuner_plugin/tools/calibrate/label.h"

enum {
  CHUNK_TRIALS_CELLS_MAX = 4,
  CHUNK_TRIALS_TEXT_MAX = CHUNK_TRIALS_CELLS_MAX * (1 + CHUNKS_TRIED_MAX) * PLAN_CELL_TEXT_MAX,
};

struct chunk_trials_size {
  uint64_t bytes;
  struct chunks_site sites[CHUNK_TRIALS_CELLS_MAX];
  size_t count;
};

/* The sizes of one collective. */
struct chunk_trials {
  struct chunk_trials_size sizes[PLAN_ENTRIES_MAX];
  size_t count;
  /* The largest chunk that NCCL took by itself in each cell. */
  uint32_t slots[PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
};

/* Adds a launch's results for one size and keeps at most `cells` of its cells. A later launch of
 * the same size replaces it. */
void chunk_trials_add(struct chunk_trials *trials, const struct label_entry *entry,
                      const struct label_times *times, size_t cells);

/* The plan's text for the size at `place`: "ring.simple@8,ring.simple@8:524288"; false: nothing. */
bool chunk_trials_format(const struct chunk_trials *trials, size_t place,
                         char text[CHUNK_TRIALS_TEXT_MAX]);

#endif
