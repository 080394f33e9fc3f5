/* SPDX-License-Identifier: Apache-2.0 */
/* label: finds out which cell each measured call used, by replaying the schedule.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: never.  Fails: with a text; a size whose calls cannot be identified gets no labels.
 *
 * Every rank logs which cells were open to each size and how many calls there were
 * (plugin/calibration.h). If they disagree, or the number is not the one that the benchmark should
 * have made, the size is rejected. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_LABEL_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_LABEL_H

#include "common/topology.h"
#include "tuner_plugin/calibrate/plan.h"
#include "tuner_plugin/tools/calibrate/bench_json.h"

struct label_entry {
  enum profile_collective collective;
  uint64_t bytes;
  uint32_t ranks;
  uint32_t nodes;
  int nccl;
  struct schedule_set set;
  uint64_t calls; /* 0: no rank logged the end */
  bool is_unsteady;
  bool is_disputed; /* ranks disagree */
};

struct label_log {
  struct label_entry entries[PLAN_ENTRIES_MAX];
  size_t count;
  bool is_refused;                /* a rank logged that its communicators cannot be calibrated */
  char topology[TOPOLOGY_ID_MAX]; /* of all ranks; empty: not known, or not one */
  bool has_topology;              /* a rank logged it */
  bool is_mixed;                  /* ranks have different ones */
};

/* Takes one line of output, whatever it is. */
void label_take_line(struct label_log *log, const char *line);

/* NULL: no rank logged it. */
struct label_entry *label_find(struct label_log *log, enum profile_collective collective,
                               uint64_t bytes);

/* Why a log without entries has none. */
const char *label_why_none(const struct label_log *log);

struct label_summary {
  double median_us;
  double mad_us;
};

/* The times of one cell, without the calls that set up connections. */
struct label_cell {
  struct schedule_cell cell;
  size_t count;
  struct label_summary summary;
};

struct label_times {
  struct label_cell cells[SCHEDULE_CELLS_MAX]; /* [0] is NCCL's own choice */
  size_t count;
};

enum { LABEL_ERROR_MAX = 256 };
/* `seed` and `run` of the plan. In each place the benchmark makes one call before those that it
 * times, to synchronise. */
int label_row(const struct bench_json_row *row, const struct label_entry *entry, uint64_t seed,
              uint32_t run, struct label_times *times, char error[LABEL_ERROR_MAX]);

/* Sorts the times. */
struct label_summary label_summarize(double *times_us, size_t count);

#endif
