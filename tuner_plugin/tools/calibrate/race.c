/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sums of logs over launches, and compares means by how far launches scatter. */
#include "tuner_plugin/tools/calibrate/race.h"

#include <math.h>

/* What is not worth telling apart; what one launch alone may be wrong by; what is given up for
 * lost, whatever launches do. Logs. */
static const double least_margin = 0.05, first_margin = 0.4, most_margin = 0.69;
/* Standard errors. */
static const double errors_apart = 2;

const struct race_cell *race_find(const struct race *race, struct schedule_cell cell) {
  for (size_t i = 0; i < race->count; i++) {
    if (schedule_is_same_cell(race->cells[i].cell, cell)) {
      return &race->cells[i];
    }
  }
  return NULL;
}

static struct race_cell *find_or_add(struct race *race, struct schedule_cell cell) {
  const struct race_cell *found = race_find(race, cell);
  if (found || race->count == SCHEDULE_CELLS_MAX) {
    return found ? &race->cells[found - race->cells] : NULL;
  }
  race->cells[race->count] = (struct race_cell){ .cell = cell };
  return &race->cells[race->count++];
}

void race_take(struct race *race, const struct label_times *times) {
  double usual_us = times->count > 0 ? times->cells[0].summary.median_us : 0;
  race->launches += usual_us > 0;
  for (size_t i = 1; i < times->count && usual_us > 0; i++) {
    double us = times->cells[i].summary.median_us;
    struct race_cell *cell = us > 0 ? find_or_add(race, times->cells[i].cell) : NULL;
    if (cell) {
      double ratio = log(us / usual_us);
      cell->sum += ratio;
      cell->squares += ratio * ratio;
      cell->launches++;
    }
  }
}

static double mean_of(const struct race_cell *cell) {
  return cell->sum / (double)cell->launches;
}

/* The standard deviation of a cell from launch to launch, all cells together; 0: there were not two
 * launches of any. */
static double scatter_of(const struct race *race) {
  double squares = 0;
  size_t free = 0;
  for (size_t i = 0; i < race->count; i++) {
    const struct race_cell *cell = &race->cells[i];
    squares += fmax(0, cell->squares - cell->sum * cell->sum / (double)cell->launches);
    free += cell->launches - 1;
  }
  return free > 0 ? sqrt(squares / (double)free) : 0;
}

static double margin_of(const struct race_cell *cell, double scatter) {
  double apart = errors_apart * scatter / sqrt((double)cell->launches);
  double margin = cell->launches > 1 ? apart : fmax(apart, first_margin);
  return fmin(fmax(margin, least_margin), most_margin);
}

size_t race_contested(const struct race *race, size_t kept[SCHEDULE_CELLS_MAX]) {
  double scatter = scatter_of(race), best = 0; /* NCCL's own choice */
  size_t count = 0;
  for (size_t i = 0; i < race->count; i++) {
    best = fmin(best, mean_of(&race->cells[i]));
  }
  for (size_t i = 0; i < race->count; i++) {
    double mean = mean_of(&race->cells[i]);
    if (mean - best <= margin_of(&race->cells[i], scatter)) {
      size_t place = count++;
      for (; place > 0 && mean < mean_of(&race->cells[kept[place - 1]]); place--) {
        kept[place] = kept[place - 1];
      }
      kept[place] = i;
    }
  }
  return count;
}
