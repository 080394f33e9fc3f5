/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the calls of each size and applies the schedule to the next one. */
#include "tuner_plugin/plugin/calibration.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/topology.h"
#include "tuner_plugin/calibrate/plan.h"

/* The calls of one collective and size. */
struct stream {
  uint64_t calls;
  struct schedule_set set; /* of the first call */
  bool is_unsteady;        /* later calls were offered other cells */
};

struct calibration {
  pthread_mutex_t lock;
  struct tuner_host host;
  struct tuner_shape shape;
  struct plan plan;
  struct stream *streams; /* one for each entry of the plan */
  struct plan_entry entries[PLAN_ENTRIES_MAX];
};

/* All communicators of a process have the same plan, so one warning is enough. */
static void warn_of_plan(const char *error) {
  static bool is_said; /* atomic */
  if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED)) {
    LOG_WARN("STRATUS_CALIBRATE: %s; nothing is calibrated, NCCL's own choice is untouched", error);
  }
}

/* The topology is only logged; no choice depends on it. */
static void say_topology(void) {
  char id[TOPOLOGY_ID_MAX];
  topology_identify(id);
  LOG_INFO("calibrate topology %s .", id[0] ? id : "unknown");
}

struct calibration *calibration_open(const char *plan, struct tuner_host host,
                                     struct tuner_shape shape) {
  if (shape.nodes < 2 || shape.ranks % shape.nodes != 0 || shape.is_uneven ||
      host.abi_version < 3) {
    LOG_INFO("%zu ranks on %zu nodes, tuner interface v%d: not calibrated; that needs two or more "
             "nodes with equal numbers of ranks, and NCCL 2.22 or later",
             shape.ranks, shape.nodes, host.abi_version);
    return NULL;
  }
  struct calibration *opened = calloc(1, sizeof *opened);
  char error[PLAN_ERROR_MAX] = "out of memory";
  if (!opened || plan_parse(plan, opened->entries, &opened->plan, error) < 0) {
    warn_of_plan(error);
    free(opened);
    return NULL;
  }
  opened->streams = calloc(opened->plan.entry_count, sizeof *opened->streams);
  if (!opened->streams) {
    free(opened);
    return NULL;
  }
  pthread_mutex_init(&opened->lock, NULL);
  opened->host = host;
  opened->shape = shape;
  say_topology();
  return opened;
}

static void say_end(const struct plan_entry *entry, const struct stream *stream) {
  const char *name = profile_collective_name(entry->collective);
  if (stream->is_unsteady) {
    LOG_INFO("calibrate end %s %" PRIu64 " unsteady .", name, entry->bytes);
  } else if (stream->calls > 0) {
    LOG_INFO("calibrate end %s %" PRIu64 " calls %" PRIu64 " .", name, entry->bytes, stream->calls);
  }
}

void calibration_close(struct calibration *calibration) {
  if (!calibration) {
    return;
  }
  for (size_t i = 0; i < calibration->plan.entry_count; i++) {
    say_end(&calibration->entries[i], &calibration->streams[i]);
  }
  pthread_mutex_destroy(&calibration->lock);
  free(calibration->streams);
  free(calibration);
}

static void say_open(const struct calibration *calibration, const struct plan_entry *entry,
                     const struct schedule_set *set) {
  char cells[SCHEDULE_CELLS_MAX * PLAN_CELL_TEXT_MAX] = "";
  size_t length = 0;
  for (size_t i = 0; i < set->count; i++) {
    char cell[PLAN_CELL_TEXT_MAX];
    length += (size_t)snprintf(cells + length, sizeof cells - length, " %s",
                               plan_format_cell(set->cells[i], cell));
  }
  LOG_INFO("calibrate open %s %" PRIu64 " ranks %zu nodes %zu nccl %d cells%s .",
           profile_collective_name(entry->collective), entry->bytes, calibration->shape.ranks,
           calibration->shape.nodes, calibration->host.nccl_version, cells);
}

/* The cell of the next call, from what NCCL offers for it, and its place; 0: NCCL's own. */
static size_t next_cell(struct calibration *calibration, int place, struct decide_costs costs,
                        struct schedule_cell *cell) {
  const struct plan_entry *entry = &calibration->entries[place];
  struct stream *stream = &calibration->streams[place];
  struct schedule_set set;
  plan_open(&calibration->plan, entry->bytes, costs, &set);
  uint64_t call = stream->calls++;
  if (call == 0) {
    stream->set = set;
    say_open(calibration, entry, &set);
  } else if (!schedule_is_same(&set, &stream->set)) {
    stream->is_unsteady = true;
  }
  if (set.count == 0) {
    return 0;
  }
  struct schedule_key key = {
    .seed = calibration->plan.seed,
    .run = calibration->plan.run,
    .collective = entry->collective,
    .bytes = entry->bytes,
  };
  size_t picked = schedule_pick(key, set.count, call).cell;
  *cell = set.cells[picked];
  return picked;
}

static bool put_cell(struct schedule_cell cell, struct decide_costs costs, int *channels) {
  const struct decide_choice choice = { .algo = cell.algorithm,
                                        .proto = cell.protocol,
                                        .channels = (uint8_t)cell.channels,
                                        .over = DECIDE_ANY_CELL };
  return decide_put(&choice, costs, channels);
}

bool calibration_choose(struct calibration *calibration, int coll, size_t bytes,
                        struct decide_costs costs, int *channels) {
  int entry = plan_find(&calibration->plan, coll, bytes);
  if (entry < 0) {
    return false;
  }
  struct schedule_cell cell;
  pthread_mutex_lock(&calibration->lock);
  bool is_ours = next_cell(calibration, entry, costs, &cell) > 0 && put_cell(cell, costs, channels);
  pthread_mutex_unlock(&calibration->lock);
  return is_ours;
}
