/* SPDX-License-Identifier: Apache-2.0 */
/* label: what the tuner's lines (plugin/calibration.h) say of a launch: which cells were open to
 * each size, and so which one its calls have used. Owns: nothing.  Threads: the main thread.
 * Blocks: never.  Fails: with a text; a size of which ranks say different things gets no label. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_LABEL_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_LABEL_H

#include "common/topology.h"
#include "tuner_plugin/decide/costs.h"
#include "tuner_plugin/decide/limits.h"
#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/tools/calibrate/bench_json.h"

struct label_entry {
  enum profile_collective collective;
  uint64_t bytes;
  uint32_t ranks;
  uint32_t nodes;
  int nccl;
  unsigned usual; /* costs_cell of NCCL's own choice */
  uint32_t open;  /* a bit for each costs_cell */
  bool is_unsteady;
  bool is_disputed; /* ranks disagree */
};

struct label_log {
  struct label_entry entries[CALIBRATE_SIZES_MAX];
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

/* Whether the cell is open to the size, and not what NCCL itself takes. */
bool label_is_open(const struct label_entry *entry, const struct profile_cell *cell);

/* Why a log without entries has none. */
const char *label_why_none(const struct label_log *log);

/* Why the size has no sample of the cell (NULL: of NCCL's own choice); NULL: it has, *sample, but
 * for time, run and topology. */
const char *label_row(const struct bench_json_row *row, const struct label_entry *entry,
                      const struct profile_cell *cell, struct sample *sample);

#endif
