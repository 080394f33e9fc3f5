/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the cells that are worth trying, and schedules them in random blocks. */
#include "tuner_plugin/calibrate/schedule.h"

#include <string.h>

#include "common/random.h"

bool schedule_is_same_cell(struct schedule_cell a, struct schedule_cell b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels;
}

bool schedule_has_cell(const struct schedule_cell *cells, size_t count, struct schedule_cell cell) {
  for (size_t i = 0; i < count; i++) {
    if (schedule_is_same_cell(cells[i], cell)) {
      return true;
    }
  }
  return false;
}

static void schedule_add(struct schedule_set *set, struct schedule_cell cell) {
  if (!schedule_has_cell(set->cells, set->count, cell) && set->count < SCHEDULE_CELLS_MAX) {
    set->cells[set->count++] = cell;
  }
}

/* CollNet takes a number of channels as it is, also one that the communicator does not have. */
static bool can_bound_channels(unsigned algorithm) {
  return algorithm != PROFILE_COLLNET_DIRECT && algorithm != PROFILE_COLLNET_CHAIN;
}

static bool is_offered(struct schedule_cell cell, struct decide_costs costs, double cheapest) {
  double cost = (double)costs_at(costs, cell.algorithm, cell.protocol);
  return cost >= 0 && cost <= cheapest * SCHEDULE_COST_FACTOR_MAX &&
         (cell.channels == 0 || can_bound_channels(cell.algorithm));
}

static bool is_hopeless(struct schedule_cell cell, struct schedule_cell chosen,
                        struct schedule_limits limits, uint64_t bytes, double cost,
                        double cheapest) {
  if (cell.algorithm == chosen.algorithm && cell.protocol == chosen.protocol) {
    return false;
  }
  return (cell.protocol == PROFILE_LL && bytes > limits.ll_bytes) ||
         cost > cheapest * (double)limits.cost_factor;
}

void schedule_open(const struct schedule_wish *wish, struct schedule_limits limits, uint64_t bytes,
                   struct decide_costs costs, struct schedule_set *set) {
  memset(set, 0, sizeof *set);
  struct costs_choice usual;
  if (!costs_choose(costs, &usual) || usual.cell == COSTS_UNKNOWN_CELL) {
    return;
  }
  struct schedule_cell chosen = { .algorithm = (uint8_t)costs_cell_algorithm(usual.cell),
                                  .protocol = (uint8_t)costs_cell_protocol(usual.cell) };
  double cheapest = (double)usual.us;
  schedule_add(set, chosen);
  for (size_t i = 0; i < wish->cell_count; i++) {
    if (is_offered(wish->cells[i], costs, cheapest)) {
      schedule_add(set, wish->cells[i]);
    }
  }
  for (size_t i = 0; i < wish->channel_count; i++) {
    for (unsigned a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
      for (unsigned p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
        struct schedule_cell cell = { (uint8_t)a, (uint8_t)p, wish->channels[i] };
        if (is_offered(cell, costs, cheapest) &&
            !is_hopeless(cell, chosen, limits, bytes, (double)costs_at(costs, a, p), cheapest)) {
          schedule_add(set, cell);
        }
      }
    }
  }
}

static uint64_t seed_of_block(struct schedule_key key, uint64_t block) {
  uint64_t state = key.seed;
  state ^= random_next(&state) + (uint64_t)key.collective;
  state ^= random_next(&state) + key.bytes;
  state ^= random_next(&state) + block;
  return random_next(&state);
}

/* The cell at `place` of a block. */
static size_t deal(struct schedule_key key, size_t count, uint64_t block, uint64_t place) {
  uint8_t order[SCHEDULE_CELLS_MAX];
  for (size_t i = 0; i < count; i++) {
    order[i] = (uint8_t)i;
  }
  /* The remainder favours no cell by more than 32 in 2^64. */
  uint64_t state = seed_of_block(key, block);
  for (size_t i = count - 1; i > 0; i--) {
    size_t other = (size_t)(random_next(&state) % (i + 1));
    uint8_t kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  return order[place];
}

/* Calls in a run. */
static uint64_t run_of(struct schedule_key key) {
  uint64_t most = key.run > 1 ? key.run : 1, least = (most + 3) / 4;
  uint64_t enough = SCHEDULE_RUN_BYTES / (key.bytes + 1) + 1;
  return enough > most ? most : enough < least ? least : enough;
}

struct schedule_turn schedule_pick(struct schedule_key key, size_t count, uint64_t call) {
  if (call < count) {
    return (struct schedule_turn){ deal(key, count, 0, call), false };
  }
  uint64_t run = run_of(key);
  uint64_t turn = (call - count) / run;
  return (struct schedule_turn){
    .cell = deal(key, count, 1 + turn / count, turn % count),
    .is_counted = (call - count) % run >= run / 3,
  };
}

bool schedule_is_same(const struct schedule_set *a, const struct schedule_set *b) {
  if (a->count != b->count) {
    return false;
  }
  for (size_t i = 0; i < a->count; i++) {
    if (!schedule_is_same_cell(a->cells[i], b->cells[i])) {
      return false;
    }
  }
  return true;
}
