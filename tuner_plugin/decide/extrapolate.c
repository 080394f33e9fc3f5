/* SPDX-License-Identifier: Apache-2.0 */
/* Four views of all sizes, two tables in two ways each, cut wherever one of them changes. */
#include "tuner_plugin/decide/extrapolate.h"

#include <stddef.h>

#include "tuner_plugin/decide/limits.h"

enum {
  ALONE_NODES = 2, /* nothing is carried from or to two nodes, see extrapolate.h */
  VIEW_COUNT = 4,
};

static bool is_shared(enum profile_collective collective) {
  return collective == PROFILE_ALLGATHER || collective == PROFILE_REDUCESCATTER;
}

/* Of a tree over the nodes. */
static uint64_t depth_of(uint64_t nodes, bool is_rounded_up) {
  if (nodes <= 1) {
    return 0;
  }
  uint64_t up = 64 - (uint64_t)__builtin_clzll(nodes - 1);
  return is_rounded_up || (nodes & (nodes - 1)) == 0 ? up : up - 1;
}

static double model_us(const struct profile_model *model, uint64_t nodes, uint64_t ppn,
                       uint64_t bytes, bool is_depth_rounded_up) {
  uint64_t depth = depth_of(nodes, is_depth_rounded_up);
  uint64_t ranks = nodes * ppn;
  uint64_t times = model->collective == PROFILE_ALLREDUCE ? 2 : 1;
  uint64_t inter, intra;
  double carried = (double)times;
  switch (model->algorithm) {
  case PROFILE_RING:
    inter = times * (nodes - 1);
    intra = times * (ranks - nodes);
    break;
  case PROFILE_PAT:
    inter = depth;
    intra = ranks;
    break;
  default:
    inter = 2 * depth;
    intra = 2 * (ppn - 1);
  }
  bool is_split = model->algorithm == PROFILE_RING && model->collective == PROFILE_ALLREDUCE;
  if (is_split || is_shared(model->collective)) {
    carried = carried * (double)(ranks - 1) / (double)ranks;
  }
  double us = (double)model->base_ns + (double)intra * (double)model->intra_ns +
              (double)inter * (double)model->inter_ns;
  return us / 1000.0 + carried * (double)bytes * 1000.0 / (double)model->bytes_per_ms;
}

double extrapolate_model_us(const struct profile_model *model, uint64_t nodes, uint64_t ppn,
                            uint64_t bytes) {
  return model_us(model, nodes, ppn, bytes, true);
}

struct extrapolate_walk extrapolate_begin(const struct profile *profile,
                                          enum profile_collective collective, uint32_t nodes,
                                          uint32_t ppn) {
  struct extrapolate_walk walk = { .profile = profile, .nodes = nodes };
  for (size_t i = 0; i < profile->table_count; i++) {
    const struct profile_table *table = &profile->tables[i];
    if (table->collective != collective || table->ppn != ppn || table->nodes <= ALONE_NODES ||
        nodes <= ALONE_NODES || table->nodes == nodes) {
      continue;
    }
    bool is_fewer = table->nodes < nodes;
    const struct profile_table *best = walk.tables[is_fewer ? 0 : 1];
    uint64_t few = is_fewer ? table->nodes : nodes, many = is_fewer ? nodes : table->nodes;
    bool is_nearer = !best || (is_fewer ? table->nodes > best->nodes : table->nodes < best->nodes);
    if (is_nearer && few * EXTRAPOLATE_FACTOR >= many) {
      walk.tables[is_fewer ? 0 : 1] = table;
    }
  }
  walk.is_over = !walk.tables[0] && !walk.tables[1];
  return walk;
}

/* ---- views ---- */

static const struct profile_table *table_of(const struct extrapolate_walk *walk, int view) {
  return walk->tables[view / 2];
}

/* The odd views compare bytes per rank. From a size of the table to one of the walk, and back. */
static uint64_t scale(uint64_t bytes, uint32_t by, uint32_t from) {
  if (bytes == UINT64_MAX) {
    return bytes;
  }
  unsigned __int128 scaled = (unsigned __int128)bytes * by / from;
  return scaled >= UINT64_MAX ? UINT64_MAX - 1 : (uint64_t)scaled;
}

static uint64_t to_walk(const struct extrapolate_walk *walk, int view, uint64_t bytes) {
  return view % 2 ? scale(bytes, walk->nodes, table_of(walk, view)->nodes) : bytes;
}

static uint64_t to_table(const struct extrapolate_walk *walk, int view, uint64_t bytes) {
  return view % 2 ? scale(bytes, table_of(walk, view)->nodes, walk->nodes) : bytes;
}

/* The view's row at `at`, or NULL; *end gets where that changes. */
static const struct profile_row *view_row(struct extrapolate_walk *walk, int view, uint64_t at,
                                          uint64_t *end) {
  const struct profile_table *table = table_of(walk, view);
  size_t *cursor = &walk->cursors[view];
  while (*cursor < table->row_count && to_walk(walk, view, table->rows[*cursor].bytes_hi) <= at) {
    (*cursor)++;
  }
  if (*cursor == table->row_count) {
    *end = UINT64_MAX;
    return NULL;
  }
  const struct profile_row *row = &table->rows[*cursor];
  uint64_t lo = to_walk(walk, view, row->bytes_lo);
  *end = at < lo ? lo : to_walk(walk, view, row->bytes_hi);
  return at < lo ? NULL : row;
}

static bool is_same_choice(const struct profile_row *a, const struct profile_row *b) {
  return a->algorithm == b->algorithm && a->protocol == b->protocol && a->channels == b->channels &&
         a->chunk_bytes == b->chunk_bytes && a->over_algorithm == b->over_algorithm &&
         a->over_protocol == b->over_protocol;
}

/* ---- gains ---- */

/* Does the view's row, carried to `bytes` on the walk's nodes, gain enough? */
static bool is_worth_there(const struct extrapolate_walk *walk, int view,
                           const struct profile_row *row, uint64_t bytes) {
  const struct profile_table *table = table_of(walk, view);
  const struct profile_model *choice =
      profile_find_model(walk->profile, table->collective, row->algorithm, row->protocol);
  const struct profile_model *by_default =
      profile_find_model(walk->profile, table->collective, row->over_algorithm, row->over_protocol);
  if (!row->is_measured || !choice || !by_default) {
    return false;
  }
  uint64_t there = to_table(walk, view, bytes);
  /* How deep a tree is over a number of nodes that is no power of two is not sure: the choice is
   * taken to be the slower one. */
  double default_us = (double)row->default_ns *
                      model_us(by_default, walk->nodes, table->ppn, bytes, false) /
                      model_us(by_default, table->nodes, table->ppn, there, true);
  double choice_us = (double)row->choice_ns *
                     model_us(choice, walk->nodes, table->ppn, bytes, true) /
                     model_us(choice, table->nodes, table->ppn, there, false);
  uint32_t needed = EXTRAPOLATE_GAIN_PERMILLE;
  uint32_t spread = choice->spread_permille > by_default->spread_permille
                        ? choice->spread_permille
                        : by_default->spread_permille;
  needed = spread > needed ? spread : needed;
  needed = 2 * row->noise_permille > needed ? 2 * row->noise_permille : needed;
  return default_us * 1000.0 >= choice_us * (1000.0 + (double)needed);
}

static uint64_t last_of(uint64_t lo, uint64_t end) {
  if (end < UINT64_MAX) {
    return end - 1;
  }
  return lo > UINT64_MAX / EXTRAPOLATE_OPEN_END_FACTOR ? lo : lo * EXTRAPOLATE_OPEN_END_FACTOR;
}

/* The row that all views have in [lo, *end), and that is worth it at both ends, or NULL. */
static const struct profile_row *common_row(struct extrapolate_walk *walk, uint64_t lo,
                                            uint64_t *end) {
  const struct profile_row *rows[VIEW_COUNT] = { NULL };
  const struct profile_row *common = NULL;
  bool is_agreed = true;
  *end = UINT64_MAX;
  for (int view = 0; view < VIEW_COUNT; view++) {
    if (!table_of(walk, view)) {
      continue;
    }
    uint64_t change;
    rows[view] = view_row(walk, view, lo, &change);
    *end = change < *end ? change : *end;
    common = common ? common : rows[view];
    is_agreed = is_agreed && rows[view] && is_same_choice(rows[view], common);
  }
  for (int view = 0; view < VIEW_COUNT && is_agreed; view++) {
    is_agreed = !rows[view] || (is_worth_there(walk, view, rows[view], lo) &&
                                is_worth_there(walk, view, rows[view], last_of(lo, *end)));
  }
  return is_agreed ? common : NULL;
}

bool extrapolate_next(struct extrapolate_walk *walk, uint64_t *bytes_lo, struct profile_row *row) {
  while (!walk->is_over) {
    uint64_t lo = walk->next, end;
    const struct profile_row *found = common_row(walk, lo, &end);
    walk->next = end;
    walk->is_over = end == UINT64_MAX;
    if (found) {
      *bytes_lo = lo;
      *row = *found;
      row->bytes_hi = end;
      return true;
    }
  }
  return false;
}
