/* SPDX-License-Identifier: Apache-2.0 */
/* guard: cells that a profile may not choose, and outputs that stay as they were. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/decide/guard.h"

enum { ALGOS = 7, PROTOS = 3 };

struct cells {
  float us[ALGOS][PROTOS];
};

static struct cells all_ignored(void) {
  struct cells cells;
  for (int a = 0; a < ALGOS; a++) {
    for (int p = 0; p < PROTOS; p++) {
      cells.us[a][p] = -1.0f;
    }
  }
  return cells;
}

static enum guard_verdict check(struct cells *cells, unsigned algo, unsigned proto) {
  struct decide_costs costs = { .us = &cells->us[0][0], .algos = ALGOS, .protos = PROTOS };
  return guard_check(costs, algo, proto, DECIDE_ANY_CELL);
}

UNIT_TEST(never_revives_a_cell) {
  struct cells cells = all_ignored();
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_REFUSED);
  cells.us[PROFILE_TREE][PROFILE_LL] = 10.0f;
  static const float dead[] = { -1.0f, -0.5f, -1e30f, -INFINITY, NAN, INFINITY };
  for (size_t i = 0; i < sizeof dead / sizeof dead[0]; i++) {
    cells.us[PROFILE_RING][PROFILE_SIMPLE] = dead[i];
    assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_REFUSED);
  }
}

UNIT_TEST(knows_the_default) {
  struct cells cells = all_ignored();
  cells.us[PROFILE_TREE][PROFILE_LL] = NAN;
  cells.us[PROFILE_TREE][PROFILE_SIMPLE] = 10.0f;
  cells.us[PROFILE_RING][PROFILE_LL] = 10.0f; /* a tie goes to the first */
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 11.0f;
  assert_int_equal(check(&cells, PROFILE_TREE, PROFILE_SIMPLE), GUARD_IS_DEFAULT);
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_LL), GUARD_OVERRIDE);
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_OVERRIDE);
}

/* NCCL 2.24 and later multiply lossy fp8 rings by 1024. */
UNIT_TEST(respects_the_fp8_penalty) {
  struct cells cells = all_ignored();
  cells.us[PROFILE_TREE][PROFILE_SIMPLE] = 100.0f;
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 60.0f * 1024.0f;
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_REFUSED);
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 25599.0f;
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_OVERRIDE);
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 25600.0f;
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_REFUSED);
  /* The product must not overflow to something that lets all pass. */
  cells.us[PROFILE_TREE][PROFILE_SIMPLE] = FLT_MAX / 2;
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = INFINITY;
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_REFUSED);
}

/* With one rank, NCCL's table holds a single zero. */
UNIT_TEST(a_free_default_stays) {
  struct cells cells = all_ignored();
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 0.0f;
  cells.us[PROFILE_RING][PROFILE_LL] = 0.0f;
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_SIMPLE), GUARD_REFUSED);
  assert_int_equal(check(&cells, PROFILE_RING, PROFILE_LL), GUARD_IS_DEFAULT);
}

UNIT_TEST(stays_within_the_table) {
  struct cells cells = all_ignored();
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 5.0f;
  cells.us[PROFILE_PAT][PROFILE_SIMPLE] = 5.0f;
  struct decide_costs costs = { .us = &cells.us[0][0], .algos = 6, .protos = PROTOS };
  assert_int_equal(guard_check(costs, PROFILE_PAT, PROFILE_SIMPLE, DECIDE_ANY_CELL), GUARD_REFUSED);
  costs.algos = 7;
  assert_int_equal(guard_check(costs, PROFILE_PAT, PROFILE_SIMPLE, DECIDE_ANY_CELL),
                   GUARD_OVERRIDE);
  assert_int_equal(guard_check(costs, PROFILE_PAT, 3, DECIDE_ANY_CELL), GUARD_REFUSED);
  static const int odd[][2] = { { 0, 3 }, { 7, 0 }, { -7, 3 }, { 7, -3 }, { -1, -1 } };
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    costs.algos = odd[i][0];
    costs.protos = odd[i][1];
    assert_int_equal(guard_check(costs, PROFILE_TREE, PROFILE_LL, DECIDE_ANY_CELL), GUARD_REFUSED);
  }
  costs = (struct decide_costs){ .us = NULL, .algos = 7, .protos = 3 };
  assert_int_equal(guard_check(costs, PROFILE_RING, PROFILE_SIMPLE, DECIDE_ANY_CELL),
                   GUARD_REFUSED);
}

UNIT_TEST(bounds_channels) {
  assert_int_equal(guard_bound_channels(PROFILE_RING, 8, 0), 8);
  assert_int_equal(guard_bound_channels(PROFILE_RING, 0, 0), 0);
  assert_int_equal(guard_bound_channels(PROFILE_RING, 8, 16), 8);
  assert_int_equal(guard_bound_channels(PROFILE_RING, 8, 4), 0);
  assert_int_equal(guard_bound_channels(PROFILE_RING, 8, -1), 8);
  assert_int_equal(guard_bound_channels(PROFILE_COLLNET_DIRECT, 8, 0), 0);
  assert_int_equal(guard_bound_channels(PROFILE_COLLNET_CHAIN, 8, 0), 0);
}

UNIT_TEST(without_costs_only_common_cells) {
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    for (unsigned algo = 0; algo < ALGOS; algo++) {
      for (unsigned proto = 0; proto < PROTOS; proto++) {
        bool is_common =
            proto != PROFILE_LL128 &&
            (algo == PROFILE_RING || (algo == PROFILE_TREE && coll == PROFILE_ALLREDUCE));
        assert_int_equal(guard_allows_blind(coll, algo, proto), is_common);
      }
    }
  }
}

/* One row, all sizes: what is written and what is not. */
UNIT_TEST(writes_the_cell_and_nothing_else) {
  struct profile_row row = {
    .bytes_hi = UINT64_MAX, .algorithm = PROFILE_RING, .protocol = PROFILE_SIMPLE, .channels = 4
  };
  const struct profile_table allreduce = { .rows = &row, .row_count = 1 };
  const struct decide_tables table = { .of = { [PROFILE_ALLREDUCE] = &allreduce } };
  struct cells cells = all_ignored();
  cells.us[PROFILE_TREE][PROFILE_LL] = 3.0f;
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 4.0f;
  struct cells expected = cells;
  struct decide_costs costs = { .us = &cells.us[0][0], .algos = ALGOS, .protos = PROTOS };
  int channels = 0;
  assert_false(decide_by_costs(&table, PROFILE_REDUCE, 1024, costs, &channels));
  assert_memory_equal(&cells, &expected, sizeof cells);
  assert_int_equal(channels, 0);

  assert_true(decide_by_costs(&table, PROFILE_ALLREDUCE, 1024, costs, &channels));
  expected.us[PROFILE_RING][PROFILE_SIMPLE] = 0.0f;
  assert_memory_equal(&cells, &expected, sizeof cells);
  assert_int_equal(channels, 4);

  /* Refused: neither the cell nor the channels. */
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = -1.0f;
  expected = cells;
  channels = 0;
  assert_false(decide_by_costs(&table, PROFILE_ALLREDUCE, 1024, costs, &channels));
  assert_memory_equal(&cells, &expected, sizeof cells);
  assert_int_equal(channels, 0);

  /* The default already: the channels alone. */
  cells.us[PROFILE_RING][PROFILE_SIMPLE] = 2.0f;
  expected = cells;
  assert_true(decide_by_costs(&table, PROFILE_ALLREDUCE, 1024, costs, &channels));
  assert_memory_equal(&cells, &expected, sizeof cells);
  assert_int_equal(channels, 4);

  int algo = -1, proto = -1;
  channels = 2;
  assert_false(decide_by_number(&table, PROFILE_BROADCAST, 8, &algo, &proto, &channels));
  assert_true(algo == -1 && proto == -1 && channels == 2);
  assert_true(decide_by_number(&table, PROFILE_ALLREDUCE, 8, &algo, &proto, &channels));
  assert_true(algo == PROFILE_RING && proto == PROFILE_SIMPLE && channels == 2);
}

UNIT_MAIN(NULL, NULL)
