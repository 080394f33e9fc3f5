/* SPDX-License-Identifier: Apache-2.0 */
/* schedule: balance, the same at every rank, nothing that NCCL ruled out; and the text of plans. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/calibrate/plan.h"

enum { ALGOS = 7, PROTOS = 3 };

struct cells {
  float us[ALGOS][PROTOS];
};

static struct cells offer(float tree_ll, float tree_simple, float ring_ll, float ring_simple) {
  struct cells cells;
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    cells.us[cell / PROTOS][cell % PROTOS] = -1.0f;
  }
  cells.us[PROFILE_TREE][PROFILE_LL] = tree_ll;
  cells.us[PROFILE_TREE][PROFILE_SIMPLE] = tree_simple;
  cells.us[PROFILE_RING][PROFILE_LL] = ring_ll;
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = ring_simple;
  return cells;
}

static struct plan_entry entries[PLAN_ENTRIES_MAX];

static struct plan parse(const char *text) {
  struct plan plan;
  char error[PLAN_ERROR_MAX] = "";
  if (plan_parse(text, entries, &plan, error) < 0) {
    fail_msg("%s: %s", text, error);
  }
  return plan;
}

static struct schedule_set open_first(const char *text, struct cells *cells, int algos) {
  struct plan plan = parse(text);
  struct schedule_set set;
  plan_open(&plan, plan.entries[0].bytes, (struct decide_costs){ &cells->us[0][0], algos, PROTOS },
            &set);
  return set;
}

/* "ring.ll tree.simple@2" */
static const char *name(const struct schedule_set *set) {
  static char text[SCHEDULE_CELLS_MAX * PLAN_CELL_TEXT_MAX];
  text[0] = '\0';
  for (size_t i = 0; i < set->count; i++) {
    char cell[PLAN_CELL_TEXT_MAX];
    strcat(text, i ? " " : "");
    strcat(text, plan_format_cell(set->cells[i], cell));
  }
  return text;
}

UNIT_TEST(every_block_has_every_cell_once) {
  struct schedule_key key = { 7, 1, PROFILE_ALLREDUCE, 4096 };
  for (size_t count = 1; count <= SCHEDULE_CELLS_MAX; count++) {
    for (uint64_t block = 0; block < 50; block++) {
      uint64_t seen = 0;
      for (size_t i = 0; i < count; i++) {
        struct schedule_turn turn = schedule_pick(key, count, block * count + i);
        size_t picked = turn.cell;
        assert_true(turn.is_counted == (block > 0));
        assert_true(picked < count);
        seen |= UINT64_C(1) << picked;
      }
      assert_int_equal(seen, (UINT64_C(1) << count) - 1);
    }
  }
}

/* Behind the first block each cell comes `run` times in a row, two thirds count. */
static void check_runs(uint32_t most, uint64_t bytes, uint64_t run) {
  enum { CELLS = 5, BLOCKS = 40 };
  struct schedule_key key = { 3, most, PROFILE_ALLREDUCE, bytes };
  uint64_t counted[CELLS] = { 0 };
  for (uint64_t call = 0; call < CELLS + BLOCKS * CELLS * run; call++) {
    struct schedule_turn turn = schedule_pick(key, CELLS, call);
    uint64_t place = call < CELLS ? 0 : (call - CELLS) % run;
    assert_true(turn.is_counted == (call >= CELLS && place >= run / 3));
    if (place > 0) {
      assert_int_equal(turn.cell, schedule_pick(key, CELLS, call - 1).cell);
    }
    counted[turn.cell] += turn.is_counted;
  }
  for (int i = 0; i < CELLS; i++) {
    assert_int_equal(counted[i], BLOCKS * (run - run / 3));
  }
}

/* Of large sizes fewer calls are enough, but not less than a quarter. */
UNIT_TEST(cells_come_in_runs) {
  check_runs(12, 0, 12);
  check_runs(12, 1 << 20, 12);
  check_runs(12, 2 << 20, 8);
  check_runs(12, 4 << 20, 4);
  check_runs(12, 64 << 20, 3);
  check_runs(3, 8, 3);
  check_runs(3, 64 << 20, 1);
  check_runs(0, 8, 1);
}

/* Each cell comes at each place of a block about equally often: 2400 blocks, 600 expected, and the
 * binomial's standard deviation is 21. */
UNIT_TEST(no_place_is_favoured) {
  enum { CELLS = 4, BLOCKS = 2400 };
  int seen[CELLS][CELLS] = { 0 };
  struct schedule_key key = { 1, 1, PROFILE_ALLGATHER, 1 << 20 };
  for (int call = 0; call < CELLS * BLOCKS; call++) {
    seen[call % CELLS][schedule_pick(key, CELLS, (uint64_t)call).cell]++;
  }
  for (int i = 0; i < CELLS * CELLS; i++) {
    assert_in_range(seen[i / CELLS][i % CELLS], 490, 710);
  }
}

UNIT_TEST(seed_size_and_collective_change_the_order) {
  static const struct schedule_key keys[] = { { 1, 1, PROFILE_ALLREDUCE, 8 },
                                              { 2, 1, PROFILE_ALLREDUCE, 8 },
                                              { 1, 1, PROFILE_ALLREDUCE, 16 },
                                              { 1, 1, PROFILE_REDUCE, 8 } };
  for (size_t i = 1; i < sizeof keys / sizeof keys[0]; i++) {
    int equal = 0;
    for (uint64_t call = 0; call < 600; call++) {
      equal += schedule_pick(keys[0], 6, call).cell == schedule_pick(keys[i], 6, call).cell;
    }
    assert_in_range(equal, 50, 150); /* by chance: 100 */
  }
}

UNIT_TEST(never_tries_what_nccl_ruled_out) {
  struct cells cells = offer(-1.0f, 10.0f, 9.0f, NAN);
  struct schedule_set set = open_first("channels=0,2/allreduce:8", &cells, ALGOS);
  assert_string_equal(name(&set), "ring.ll tree.simple tree.simple@2 ring.ll@2");
  set = open_first("allreduce:8", &cells, 6); /* 2.22 has no PAT */
  assert_string_equal(name(&set), "ring.ll tree.simple");
  cells = offer(-1.0f, INFINITY, -1.0f, NAN);
  set = open_first("allreduce:8", &cells, ALGOS);
  assert_int_equal(set.count, 0);
  struct plan plan = parse("allreduce:8");
  plan_open(&plan, 8, (struct decide_costs){ NULL, ALGOS, PROTOS }, &set);
  assert_int_equal(set.count, 0);
}

/* Nothing but the costs and the plan decides, so a random table is the same at every rank. */
UNIT_TEST(only_offered_cells_whatever_the_table) {
  srand(5);
  for (int round = 0; round < 2000; round++) {
    struct cells cells;
    for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
      cells.us[cell / PROTOS][cell % PROTOS] =
          rand() % 3 ? -1.0f : (float)(rand() % 1000) * (rand() % 2 ? 1.0f : 1024.0f);
    }
    struct cells before = cells;
    struct schedule_set set = open_first("channels=0,1,4/allreduce:8", &cells, ALGOS);
    struct schedule_set again = open_first("channels=0,1,4/allreduce:8", &cells, ALGOS);
    assert_true(schedule_is_same(&set, &again));
    assert_memory_equal(&cells, &before, sizeof cells);
    for (size_t i = 0; i < set.count; i++) {
      float cost = cells.us[set.cells[i].algorithm][set.cells[i].protocol];
      float cheapest = cells.us[set.cells[0].algorithm][set.cells[0].protocol];
      assert_true(cost >= cheapest && cost <= PLAN_COST_FACTOR * cheapest);
    }
  }
}

UNIT_TEST(hopeless_cells_are_left_out) {
  struct cells cells = offer(10.0f, 30.0f, 45.0f, 11.0f);
  struct schedule_set set = open_first("allreduce:1M", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll tree.simple ring.simple"); /* 45 is over 4 x 10 */
  cells.us[PROFILE_RING][PROFILE_LL] = 35;
  set = open_first("allreduce:1M", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll tree.simple ring.ll ring.simple");
  set = open_first("allreduce:2M", &cells, ALGOS); /* LL, unless NCCL itself chose it */
  assert_string_equal(name(&set), "tree.ll tree.simple ring.simple");
  set = open_first("channels=2,0/allreduce:2M", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll tree.ll@2 tree.simple@2 ring.simple@2 tree.simple "
                                  "ring.simple");
}

UNIT_TEST(collnet_keeps_its_channels) {
  struct cells cells = offer(10.0f, -1.0f, -1.0f, -1.0f);
  cells.us[PROFILE_COLLNET_CHAIN][PROFILE_SIMPLE] = 12.0f;
  struct schedule_set set = open_first("channels=0,2/allreduce:8", &cells, ALGOS);
  assert_string_equal(name(&set), "tree.ll collnetchain.simple tree.ll@2");
}

UNIT_TEST(plan_is_read_and_found) {
  struct plan plan = parse("seed=12/run=3/channels=1,2/allreduce:8,64K/allgather:8");
  assert_int_equal(plan.seed, 12);
  assert_int_equal(plan.run, 3);
  assert_int_equal(plan.channel_count, 2);
  assert_int_equal(plan.channels[1], 2);
  assert_int_equal(plan.entry_count, 3);
  assert_int_equal(plan_find(&plan, PROFILE_ALLREDUCE, 65536), 1);
  assert_int_equal(plan_find(&plan, PROFILE_ALLGATHER, 8), 2);
  assert_int_equal(plan_find(&plan, PROFILE_REDUCE, 8), -1);
  assert_int_equal(plan_find(&plan, -1, 8), -1);
  plan = parse("allreduce:8");
  assert_int_equal(plan.seed, 0);
  assert_int_equal(plan.run, PLAN_RUN);
  assert_int_equal(plan.channel_count, 1);
  assert_int_equal(plan.channels[0], 0);
}

UNIT_TEST(cells_have_names) {
  static const char *const names[] = { "tree.ll128@3", "ring.simple", "collnetchain.simple" };
  static const char *const bad[] = {
    "", "ring", "ring.simple@0", "ring.simple@65", "ring.simple@", "ring.ll:8", "best.ll", ".ll"
  };
  struct schedule_cell cell;
  char text[PLAN_CELL_TEXT_MAX];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    assert_int_equal(plan_parse_cell(names[i], &cell), 0);
    assert_string_equal(plan_format_cell(cell, text), names[i]);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(plan_parse_cell(bad[i], &cell), -EINVAL);
  }
}

UNIT_TEST(bad_plans_name_the_fault) {
  static const struct {
    const char *text, *part;
  } bad[] = {
    { "", "COLLECTIVE:SIZES" },
    { "seed=1", "no collective" },
    { "seed=x/allreduce:8", "seed= takes 0 to" },
    { "seed=-1/allreduce:8", "seed= takes 0 to" },
    { "run=0/allreduce:8", "1 to 1000" },
    { "run=1001/allreduce:8", "1 to 1000" },
    { "cost=4/allreduce:8", "accepted: seed=, run=, channels=" },
    { "seed:4/allreduce:8", "accepted: seed=, run=, channels=" },
    { "channels=65/allreduce:8", "0 to 64" },
    { "channels=-1/allreduce:8", "0 to 64" },
    { "channels=1,1,1,1,1,1,1,1,1/allreduce:8", "up to 8" },
    { "allreduce", "COLLECTIVE:SIZES" },
    { "allreduce=8", "COLLECTIVE:SIZES" },
    { "allreduce:", "a size is wanted" },
    { "allreduce:x", "a size is wanted" },
    { "allreduce:8,", "a size is wanted" },
    { "allreduce:8=all", "a size is wanted" },
    { "alltoall:8", "broadcast|reduce" },
    { "allreduce:8/allreduce:4,8", "twice" },
    { "allreduce:8/", "COLLECTIVE" },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:8", "accepted" },
    { "allreduce:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "too long" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct plan plan;
    char error[PLAN_ERROR_MAX] = "";
    assert_int_equal(plan_parse(bad[i].text, entries, &plan, error), -EINVAL);
    if (!strstr(error, bad[i].part)) {
      fail_msg("%s: \"%s\" is not in: %s", bad[i].text, bad[i].part, error);
    }
  }
}

UNIT_MAIN(NULL, NULL)
