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
#include "tuner_plugin/model/sample_file.h"
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

enum { LABEL_ERROR_MAX = 256 };
/* A sample of each cell, the first one of NCCL's own choice, without the calls that set up
 * connections; n is 0 where none is left. Time, run and topology are the caller's. `seed` and `run`
 * of the plan. In each place the benchmark makes one call before those that it times, to
 * synchronise. Returns how many, or negative errno. */
int label_row(const struct bench_json_row *row, const struct label_entry *entry, uint64_t seed,
              uint32_t run, struct sample samples[SCHEDULE_CELLS_MAX], char error[LABEL_ERROR_MAX]);

/* Sets n, median_us and mad_us. Sorts the times. */
void label_summarize(double *times_us, size_t count, struct sample *sample);

#endif
