/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tuner's lines. */
#include "tuner_plugin/tools/calibrate/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"

struct label_entry *label_find(struct label_log *log, enum profile_collective collective,
                               uint64_t bytes) {
  for (size_t i = 0; i < log->count; i++) {
    if (log->entries[i].collective == collective && log->entries[i].bytes == bytes) {
      return &log->entries[i];
    }
  }
  return NULL;
}

/* " ring.simple tree.ll .": NCCL's own choice is the first. */
static bool take_cells(const char *text, struct label_entry *entry) {
  char copy[COSTS_CELLS * CELL_TEXT_MAX], *rest = NULL;
  struct profile_cell cell;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word = strtok_r(copy, " \r\n", &rest); word; word = strtok_r(NULL, " \r\n", &rest)) {
    if (strcmp(word, ".") == 0) {
      return true;
    }
    if (cell_parse(word, &cell) < 0) {
      return false;
    }
    unsigned place = costs_cell(cell.algorithm, cell.protocol);
    entry->usual = entry->open ? entry->usual : place;
    entry->open |= UINT32_C(1) << place;
  }
  return false; /* cut off on the way here */
}

static bool is_alike(const struct label_entry *a, const struct label_entry *b) {
  return a->ranks == b->ranks && a->nodes == b->nodes && a->nccl == b->nccl &&
         a->usual == b->usual && a->open == b->open;
}

static void take_open(struct label_log *log, const char *text) {
  struct label_entry entry = { 0 };
  char name[32];
  int length = 0;
  if (sscanf(text, "%31s %" SCNu64 " ranks %" SCNu32 " nodes %" SCNu32 " nccl %d cells%n", name,
             &entry.bytes, &entry.ranks, &entry.nodes, &entry.nccl, &length) != 5 ||
      length == 0 || !take_cells(text + length, &entry)) {
    return;
  }
  int collective = quantity_find_word(PROFILE_COLLECTIVE_WORDS, name);
  if (collective < 0 || entry.ranks == 0 || entry.nodes == 0) {
    return;
  }
  entry.collective = (enum profile_collective)collective;
  struct label_entry *known = label_find(log, entry.collective, entry.bytes);
  if (known) {
    known->is_disputed |= !is_alike(known, &entry);
  } else if (log->count < CALIBRATE_SIZES_MAX) {
    log->entries[log->count++] = entry;
  }
}

static void take_unsteady(struct label_log *log, const char *text) {
  char name[32];
  uint64_t bytes;
  int fields = sscanf(text, "%31s %" SCNu64, name, &bytes);
  int collective = fields == 2 ? quantity_find_word(PROFILE_COLLECTIVE_WORDS, name) : -1;
  struct label_entry *entry =
      collective < 0 ? NULL : label_find(log, (enum profile_collective)collective, bytes);
  if (entry) {
    entry->is_unsteady = true;
  }
}

/* "0d5fc02a91e7 ." or "unknown ." */
static void take_topology(struct label_log *log, const char *text) {
  char id[TOPOLOGY_ID_MAX], dot[4] = "";
  if (sscanf(text, "%12s %3s", id, dot) != 2 || strcmp(dot, ".") != 0) {
    return;
  }
  if (!topology_is_id(id, strlen(id))) {
    id[0] = '\0';
  }
  log->is_mixed |= log->has_topology && strcmp(log->topology, id) != 0;
  log->has_topology = true;
  strcpy(log->topology, log->is_mixed ? "" : id);
}

void label_take_line(struct label_log *log, const char *line) {
  static const char topology_text[] = "TUNER/stratus: calibrate topology ";
  static const char open_text[] = "TUNER/stratus: calibrate open ";
  static const char unsteady_text[] = "TUNER/stratus: calibrate unsteady ";
  const char *found;
  if ((found = strstr(line, open_text))) {
    take_open(log, found + sizeof open_text - 1);
  } else if ((found = strstr(line, unsteady_text))) {
    take_unsteady(log, found + sizeof unsteady_text - 1);
  } else if ((found = strstr(line, topology_text))) {
    take_topology(log, found + sizeof topology_text - 1);
  } else if (strstr(line, "TUNER/stratus: ") && strstr(line, ": not calibrated; that needs ")) {
    log->is_refused = true;
  }
}

const char *label_why_none(const struct label_log *log) {
  return log->is_refused ? "calibration needs two or more nodes with equal numbers of ranks, and "
                           "NCCL 2.22 or later; this communicator differs"
                         : "the tuner logged nothing: was it loaded? NCCL_DEBUG=INFO shows";
}

bool label_is_open(const struct label_entry *entry, const struct profile_cell *cell) {
  unsigned place = costs_cell(cell->algorithm, cell->protocol);
  return (entry->open >> place & 1) && (cell->channels > 0 || place != entry->usual);
}

const char *label_row(const struct bench_json_row *row, const struct label_entry *entry,
                      const struct profile_cell *cell, struct sample *sample) {
  if (entry->is_disputed) {
    return "ranks disagree";
  }
  if (entry->is_unsteady) {
    return "the cells that NCCL offers changed during the run";
  }
  if (!entry->open || (cell && !label_is_open(entry, cell))) {
    return "NCCL does not offer it";
  }
  *sample = (struct sample){
    .collective = entry->collective,
    .bytes = entry->bytes,
    .nodes = entry->nodes,
    .ppn = entry->ranks / entry->nodes,
    .cell = cell ? *cell : cell_of_costs(entry->usual, 0),
    .is_default = !cell,
    .n = row->calls,
    .median_us = row->median_us,
    .mad_us = row->mad_us,
    .nccl = entry->nccl,
  };
  return NULL;
}
