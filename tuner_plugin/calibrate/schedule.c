/* SPDX-License-Identifier: Apache-2.0 */
/* Random blocks of the cells. */
#include "tuner_plugin/calibrate/schedule.h"

#include "common/random.h"

bool schedule_is_same_cell(struct schedule_cell a, struct schedule_cell b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels;
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
