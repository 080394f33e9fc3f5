/* SPDX-License-Identifier: Apache-2.0 */
/* pruning: which cells of one size are still worth measuring, by all launches so far.
 * Owns: nothing.  Threads: the main thread.  Blocks: never.  Fails: cannot.
 *
 * The calls of one launch agree with each other far better than launches do: each launch gets new
 * paths and ports, and cells that differ by 5 % in one may differ by 20 % the other way in the
 * next. So a cell is pruned only if it is behind by more than the scatter between the launches so
 * far, and after the first launch only if it is far behind. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_PRUNING_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_PRUNING_H

#include <stddef.h>

#include "tuner_plugin/tools/calibrate/label.h"

/* One cell's times over those of NCCL's own choice in the same launch, as logs. */
struct pruning_cell {
  struct schedule_cell cell;
  double sum, squares;
  size_t launches;
};

struct pruning {
  struct pruning_cell cells[SCHEDULE_CELLS_MAX];
  size_t count;
  size_t launches; /* that had a time of NCCL's own choice */
};

/* NULL: no launch has a comparable time of it. */
const struct pruning_cell *pruning_find(const struct pruning *pruning, struct schedule_cell cell);

/* Adds the results of a launch; one without a time of NCCL's own choice is ignored. */
void pruning_add(struct pruning *pruning, const struct label_times *times);

/* Indices in cells[] of those not pruned, the fastest first. None: NCCL's own choice, which is not
 * among the cells, has won, or nothing was measured. */
size_t pruning_kept(const struct pruning *pruning, size_t kept[SCHEDULE_CELLS_MAX]);

#endif
