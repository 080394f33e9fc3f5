/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what is open to each size, and puts the one cell in. */
#include "tuner_plugin/plugin/calibration.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/topology.h"
#include "tuner_plugin/decide/limits.h"

/* The calls of one collective and size, as the first one was. */
struct seen {
  int coll;
  uint64_t bytes;
  uint32_t open;
  unsigned usual;
  bool is_unsteady; /* later calls were offered other cells */
};

struct calibration {
  pthread_mutex_t lock;
  struct tuner_host host;
  struct tuner_shape shape;
  bool has_cell; /* else all is NCCL's own choice */
  struct profile_cell cell;
  size_t count;
  struct seen seen[CALIBRATE_SIZES_MAX];
};

/* All communicators of a process have the same text, so one warning is enough. */
static void warn_of_text(const char *text) {
  static bool is_said; /* atomic */
  if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED)) {
    LOG_WARN(
        "STRATUS_CALIBRATE=%.64s is neither \"default\" nor a cell as ring.simple or tree.ll@2; "
        "nothing is calibrated, NCCL's own choice is untouched",
        text);
  }
}

/* The topology is only logged; no choice depends on it. */
static void say_topology(void) {
  char id[TOPOLOGY_ID_MAX];
  topology_identify(id);
  LOG_INFO("calibrate topology %s .", id[0] ? id : "unknown");
}

struct calibration *calibration_open(const char *what, struct tuner_host host,
                                     struct tuner_shape shape) {
  struct profile_cell cell = { 0 };
  if (shape.nodes < 2 || shape.ranks % shape.nodes != 0 || shape.is_uneven ||
      host.abi_version < 3) {
    LOG_INFO("%zu ranks on %zu nodes, tuner interface v%d: not calibrated; that needs two or more "
             "nodes with equal numbers of ranks, and NCCL 2.22 or later",
             shape.ranks, shape.nodes, host.abi_version);
    return NULL;
  }
  bool has_cell = strcmp(what, "default") != 0;
  if (has_cell && cell_parse(what, &cell) < 0) {
    warn_of_text(what);
    return NULL;
  }
  struct calibration *opened = calloc(1, sizeof *opened);
  if (opened) {
    pthread_mutex_init(&opened->lock, NULL);
    opened->host = host;
    opened->shape = shape;
    opened->has_cell = has_cell;
    opened->cell = cell;
    say_topology();
  }
  return opened;
}

void calibration_close(struct calibration *calibration) {
  if (calibration) {
    pthread_mutex_destroy(&calibration->lock);
    free(calibration);
  }
}

static void say_open(const struct calibration *calibration, const struct seen *seen) {
  char cells[COSTS_CELLS * CELL_TEXT_MAX] = "", text[CELL_TEXT_MAX];
  size_t length = 0;
  for (unsigned i = 0; seen->open && i <= COSTS_CELLS; i++) {
    unsigned place = i == 0 ? seen->usual : i - 1;
    if (i == 0 || (place != seen->usual && seen->open >> place & 1)) {
      length += (size_t)snprintf(cells + length, sizeof cells - length, " %s",
                                 cell_format(cell_of_costs(place, 0), text));
    }
  }
  LOG_INFO("calibrate open %s %" PRIu64 " ranks %zu nodes %zu nccl %d cells%s .",
           profile_collective_name((enum profile_collective)seen->coll), seen->bytes,
           calibration->shape.ranks, calibration->shape.nodes, calibration->host.nccl_version,
           cells);
}

/* What is open to this call; told for the first of a size, and where a later one differs. */
static void look(struct calibration *calibration, struct seen now) {
  struct seen *seen = calibration->seen, *end = seen + calibration->count;
  while (seen < end && (seen->coll != now.coll || seen->bytes != now.bytes)) {
    seen++;
  }
  if (seen == end && calibration->count < CALIBRATE_SIZES_MAX) {
    calibration->count++;
    *seen = now;
    say_open(calibration, seen);
  } else if (seen < end && !seen->is_unsteady &&
             (seen->open != now.open || seen->usual != now.usual)) {
    seen->is_unsteady = true;
    LOG_INFO("calibrate unsteady %s %" PRIu64 " .",
             profile_collective_name((enum profile_collective)now.coll), now.bytes);
  }
}

bool calibration_choose(struct calibration *calibration, int coll, size_t bytes,
                        struct decide_costs costs, int *channels) {
  struct seen now = { .coll = coll, .bytes = bytes };
  if (coll < 0 || coll >= PROFILE_COLLECTIVE_COUNT) {
    return false;
  }
  now.open = costs_open(bytes, costs, &now.usual);
  pthread_mutex_lock(&calibration->lock);
  look(calibration, now);
  pthread_mutex_unlock(&calibration->lock);
  const struct profile_cell *cell = &calibration->cell;
  return calibration->has_cell && now.open >> costs_cell(cell->algorithm, cell->protocol) & 1 &&
         decide_put(cell, DECIDE_ANY_CELL, costs, channels);
}
