/* SPDX-License-Identifier: Apache-2.0 */
/* collnet_range: where CollNet is taken out of NCCL's cost table, and where never. */
#include <float.h>
#include <string.h>

#include "tests/lib/offer.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/decide/decide.h"

static struct offer offer;

static void fill(float others) {
  offer = offer_of(-1.0f, others, others, -1.0f);
  offer.us[PROFILE_COLLNET_CHAIN][PROFILE_SIMPLE] = 1;
  offer.us[PROFILE_COLLNET_DIRECT][PROFILE_SIMPLE] = 1;
}

static bool is_left(struct collnet_range range, int coll, uint64_t bytes) {
  struct offer before = offer;
  collnet_range_apply(&range, coll, bytes, offer_costs(&offer));
  bool has_chain = offer.us[PROFILE_COLLNET_CHAIN][PROFILE_SIMPLE] == 1;
  assert_int_equal(offer.us[PROFILE_COLLNET_DIRECT][PROFILE_SIMPLE] == 1, has_chain);
  memcpy(before.us[PROFILE_COLLNET_CHAIN], offer.us[PROFILE_COLLNET_CHAIN], sizeof before.us[0]);
  memcpy(before.us[PROFILE_COLLNET_DIRECT], offer.us[PROFILE_COLLNET_DIRECT], sizeof before.us[0]);
  assert_memory_equal(&offer, &before, sizeof before); /* all others are as they were */
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
