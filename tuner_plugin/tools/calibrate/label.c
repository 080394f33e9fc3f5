/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tuner's lines, replays its schedule, and sums up the times of each cell. */
#include "tuner_plugin/tools/calibrate/label.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantity.h"
#include "common/quantile.h"

struct label_entry *label_find(struct label_log *log, enum profile_collective collective,
                               uint64_t bytes) {
  for (size_t i = 0; i < log->count; i++) {
    if (log->entries[i].collective == collective && log->entries[i].bytes == bytes) {
      return &log->entries[i];
    }
  }
  return NULL;
}

/* " ring.simple tree.ll ." */
static bool take_cells(const char *text, struct schedule_set *set) {
  char copy[SCHEDULE_CELLS_MAX * PLAN_CELL_TEXT_MAX];
  snprintf(copy, sizeof copy, "%s", text);
  char *rest = NULL;
  for (char *word = strtok_r(copy, " \r\n", &rest); word; word = strtok_r(NULL, " \r\n", &rest)) {
    if (strcmp(word, ".") == 0) {
      return true;
    }
    if (set->count == SCHEDULE_CELLS_MAX || plan_parse_cell(word, &set->cells[set->count]) < 0) {
      return false;
    }
    set->count++;
  }
  return false; /* cut off on the way here */
}

static bool is_alike(const struct label_entry *a, const struct label_entry *b) {
  return a->ranks == b->ranks && a->nodes == b->nodes && a->nccl == b->nccl &&
         schedule_is_same(&a->set, &b->set);
}

static void take_open(struct label_log *log, const char *text) {
  struct label_entry entry = { 0 };
  char name[32];
  int length = 0;
  if (sscanf(text, "%31s %" SCNu64 " ranks %" SCNu32 " nodes %" SCNu32 " nccl %d cells%n", name,
             &entry.bytes, &entry.ranks, &entry.nodes, &entry.nccl, &length) != 5 ||
      length == 0 || !take_cells(text + length, &entry.set)) {
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
  } else if (log->count < PLAN_ENTRIES_MAX) {
    log->entries[log->count++] = entry;
  }
}

static void take_end(struct label_log *log, const char *text) {
  char name[32], what[32], dot[4] = "";
  uint64_t bytes, calls = 0;
  int fields =
      sscanf(text, "%31s %" SCNu64 " %31s %" SCNu64 " %3s", name, &bytes, what, &calls, dot);
  int collective = fields >= 3 ? quantity_find_word(PROFILE_COLLECTIVE_WORDS, name) : -1;
  struct label_entry *entry =
      collective < 0 ? NULL : label_find(log, (enum profile_collective)collective, bytes);
  if (!entry) {
    return;
  }
  if (strcmp(what, "unsteady") == 0) {
    entry->is_unsteady = true;
  } else if (strcmp(what, "calls") == 0 && strcmp(dot, ".") == 0) {
    entry->is_disputed |= entry->calls > 0 && entry->calls != calls;
    entry->calls = calls;
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
  static const char end_text[] = "TUNER/stratus: calibrate end ";
  const char *found;
  if ((found = strstr(line, open_text))) {
    take_open(log, found + sizeof open_text - 1);
  } else if ((found = strstr(line, end_text))) {
    take_end(log, found + sizeof end_text - 1);
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

/* ---- replay ---- */

enum { CALLS_BEFORE = 1 }; /* of a place, not timed */

static uint64_t count_calls(const struct bench_json_row *row) {
  uint64_t calls = 0;
  for (int place = 0; place < BENCH_JSON_PLACES; place++) {
    calls += row->places[place].calls_us ? CALLS_BEFORE + row->places[place].count : 0;
  }
  return calls;
}

static const char *find_objection(const struct bench_json_row *row,
                                  const struct label_entry *entry) {
  if (entry->is_disputed) {
    return "ranks disagree";
  }
  if (entry->is_unsteady) {
    return "the cells that NCCL offers changed during the run";
  }
  if (entry->set.count == 0) {
    return "NCCL offers nothing";
  }
  if (entry->calls == 0) {
    return "no rank logged its number of calls";
  }
  return entry->calls == count_calls(row) ? NULL
                                          : "the benchmark did not call as often as expected";
}

/* Each cell's times, `room` apart, and how many they are. */
static void deal_out(const struct bench_json_row *row, struct schedule_key key, size_t cells,
                     double *times_us, size_t room, size_t counts[SCHEDULE_CELLS_MAX]) {
  uint64_t call = 0;
  for (int place = 0; place < BENCH_JSON_PLACES; place++) {
    call += row->places[place].calls_us ? CALLS_BEFORE : 0;
    for (size_t i = 0; i < row->places[place].count; i++, call++) {
      struct schedule_turn turn = schedule_pick(key, cells, call);
      if (turn.is_counted) {
        times_us[turn.cell * room + counts[turn.cell]++] = row->places[place].calls_us[i];
      }
    }
  }
}

int label_row(const struct bench_json_row *row, const struct label_entry *entry, uint64_t seed,
              uint32_t run, struct sample samples[SCHEDULE_CELLS_MAX],
              char error[LABEL_ERROR_MAX]) {
  const char *objection = find_objection(row, entry);
  if (objection) {
    snprintf(error, LABEL_ERROR_MAX,
             "%s of %" PRIu64 " bytes: %s (%" PRIu64 " calls, %" PRIu64 " expected)",
             profile_collective_name(row->collective), row->bytes, objection, entry->calls,
             count_calls(row));
    return -EINVAL;
  }
  size_t cells = entry->set.count, counts[SCHEDULE_CELLS_MAX] = { 0 };
  size_t room = row->places[0].count + row->places[1].count;
  double *times_us = calloc(cells * room + 1, sizeof *times_us);
  if (!times_us) {
    snprintf(error, LABEL_ERROR_MAX, "out of memory");
    return -ENOMEM;
  }
  struct schedule_key key = { seed, run, entry->collective, entry->bytes };
  deal_out(row, key, cells, times_us, room, counts);
  for (size_t i = 0; i < cells; i++) {
    struct schedule_cell cell = entry->set.cells[i];
    samples[i] = (struct sample){
      .collective = entry->collective,
      .bytes = entry->bytes,
      .nodes = entry->nodes,
      .ppn = entry->ranks / entry->nodes,
      .algorithm = (enum profile_algorithm)cell.algorithm,
      .protocol = (enum profile_protocol)cell.protocol,
      .channels = cell.channels,
      .is_default = i == 0,
      .nccl = entry->nccl,
    };
    label_summarize(times_us + i * room, counts[i], &samples[i]);
  }
  free(times_us);
  return (int)cells;
}

/* ---- sums ---- */

void label_summarize(double *times_us, size_t count, struct sample *sample) {
  double *apart = count > 0 ? calloc(count, sizeof *apart) : NULL;
  if (!apart) {
    return;
  }
  sample->n = (uint32_t)count;
  sample->median_us = quantile_median(times_us, count);
  for (size_t i = 0; i < count; i++) {
    apart[i] = fabs(times_us[i] - sample->median_us);
  }
  sample->mad_us = quantile_median(apart, count);
  free(apart);
}
