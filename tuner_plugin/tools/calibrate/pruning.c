/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sums of logs over launches, and compares means by how far launches scatter. */
#include "tuner_plugin/tools/calibrate/pruning.h"

#include <math.h>

#include "tuner_plugin/tools/limits.h"

const struct pruning_cell *pruning_find(const struct pruning *pruning, struct schedule_cell cell) {
  for (size_t i = 0; i < pruning->count; i++) {
    if (schedule_is_same_cell(pruning->cells[i].cell, cell)) {
      return &pruning->cells[i];
    }
  }
  return NULL;
}

static struct pruning_cell *find_or_add(struct pruning *pruning, struct schedule_cell cell) {
  const struct pruning_cell *found = pruning_find(pruning, cell);
  if (found || pruning->count == SCHEDULE_CELLS_MAX) {
    return found ? &pruning->cells[found - pruning->cells] : NULL;
  }
  pruning->cells[pruning->count] = (struct pruning_cell){ .cell = cell };
  return &pruning->cells[pruning->count++];
}

void pruning_add(struct pruning *pruning, const struct label_times *times) {
  double usual_us = times->count > 0 ? times->cells[0].summary.median_us : 0;
  pruning->launches += usual_us > 0;
  for (size_t i = 1; i < times->count && usual_us > 0; i++) {
    double us = times->cells[i].summary.median_us;
    struct pruning_cell *cell = us > 0 ? find_or_add(pruning, times->cells[i].cell) : NULL;
    if (cell) {
      double ratio = log(us / usual_us);
      cell->sum += ratio;
      cell->squares += ratio * ratio;
      cell->launches++;
    }
  }
}

static double mean_of(const struct pruning_cell *cell) {
  return cell->sum / (double)cell->launches;
}

/* The standard deviation of a cell from launch to launch, all cells together; 0: there were not two
 * launches of any. */
static double scatter_of(const struct pruning *pruning) {
  double squares = 0;
  size_t free = 0;
  for (size_t i = 0; i < pruning->count; i++) {
    const struct pruning_cell *cell = &pruning->cells[i];
    squares += fmax(0, cell->squares - cell->sum * cell->sum / (double)cell->launches);
    free += cell->launches - 1;
  }
  return free > 0 ? sqrt(squares / (double)free) : 0;
}

static double margin_of(const struct pruning_cell *cell, double scatter) {
  double apart = PRUNING_ERRORS_APART * scatter / sqrt((double)cell->launches);
  double margin = cell->launches > 1 ? apart : fmax(apart, PRUNING_FIRST_MARGIN);
  return fmin(fmax(margin, PRUNING_LEAST_MARGIN), PRUNING_MOST_MARGIN);
}

size_t pruning_kept(const struct pruning *pruning, size_t kept[SCHEDULE_CELLS_MAX]) {
  double scatter = scatter_of(pruning), best = 0; /* NCCL's own choice */
  size_t count = 0;
  for (size_t i = 0; i < pruning->count; i++) {
    best = fmin(best, mean_of(&pruning->cells[i]));
  }
  for (size_t i = 0; i < pruning->count; i++) {
    double mean = mean_of(&pruning->cells[i]);
    if (mean - best <= margin_of(&pruning->cells[i], scatter)) {
      size_t place = count++;
      for (; place > 0 && mean < mean_of(&pruning->cells[kept[place - 1]]); place--) {
        kept[place] = kept[place - 1];
      }
      kept[place] = i;
    }
  }
  return count;
}
