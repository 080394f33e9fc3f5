/* SPDX-License-Identifier: Apache-2.0 */
/* collnet_range: where CollNet is taken out of NCCL's cost table, and where never. */
#include <float.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/decide/decide.h"

enum { ALGOS = 7, PROTOS = 3 };

static float table[ALGOS][PROTOS];

static void fill(float others) {
  for (int a = 0; a < ALGOS; a++) {
    for (int p = 0; p < PROTOS; p++) {
      table[a][p] = -1.0f;
    }
  }
  table[PROFILE_RING][PROFILE_LL] = table[PROFILE_TREE][PROFILE_SIMPLE] = others;
  table[PROFILE_COLLNET_CHAIN][PROFILE_SIMPLE] = table[PROFILE_COLLNET_DIRECT][PROFILE_SIMPLE] = 1;
}

static bool is_left(struct collnet_range range, int coll, uint64_t bytes) {
  struct decide_costs costs = { .us = &table[0][0], .algos = ALGOS, .protos = PROTOS };
  float before[ALGOS][PROTOS];
  memcpy(before, table, sizeof before);
  collnet_range_apply(&range, coll, bytes, costs);
  for (int a = 0; a < ALGOS; a++) {
    for (int p = 0; p < PROTOS; p++) {
      bool is_collnet = a == PROFILE_COLLNET_DIRECT || a == PROFILE_COLLNET_CHAIN;
      assert_true(is_collnet || table[a][p] == before[a][p]);
    }
  }
  bool has_chain = table[PROFILE_COLLNET_CHAIN][PROFILE_SIMPLE] == 1;
  assert_int_equal(table[PROFILE_COLLNET_DIRECT][PROFILE_SIMPLE] == 1, has_chain);
  return has_chain;
}

static bool is_left_at(size_t ranks, size_t nodes, bool is_halved, uint64_t bytes) {
  fill(10);
  return is_left(collnet_range_of(ranks, nodes, is_halved), PROFILE_ALLREDUCE, bytes);
}

UNIT_TEST(no_small_sizes) {
  for (size_t nodes = 2; nodes <= 8; nodes++) {
    for (size_t gpus = 1; gpus <= 8; gpus++) {
      for (int is_halved = 0; is_halved <= 1; is_halved++) {
        assert_false(is_left_at(nodes * gpus, nodes, is_halved, 8));
        assert_false(is_left_at(nodes * gpus, nodes, is_halved, (32 << 10) - 1));
        assert_true(is_left_at(nodes * gpus, nodes, is_halved, 32 << 10));
      }
    }
  }
}

UNIT_TEST(large_sizes_where_fewer_bytes_are_sent) {
  static const struct {
    size_t ranks, nodes;
    bool is_halved, is_left;
  } cases[] = { { 2, 2, false, false }, { 2, 2, true, true }, { 4, 4, false, false },
                { 4, 4, true, true },   { 4, 2, true, true }, { 4, 2, false, false },
                { 8, 4, false, true },  { 8, 4, true, true }, { 24, 3, false, true } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(is_left_at(cases[i].ranks, cases[i].nodes, cases[i].is_halved, 1ull << 30),
                     cases[i].is_left);
  }
}

UNIT_TEST(nothing_where_the_choice_is_not_ours) {
  struct collnet_range range = collnet_range_of(4, 4, false);
  fill(10);
  assert_true(is_left(range, PROFILE_ALLGATHER, 8));
  assert_true(is_left((struct collnet_range){ 0 }, PROFILE_ALLREDUCE, 8));
  static const float none[] = { -1.0f, FLT_MAX }; /* NCCL_ALGO=collnetchain */
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
    fill(none[i]);
    assert_true(is_left(range, PROFILE_ALLREDUCE, 8));
  }
}
