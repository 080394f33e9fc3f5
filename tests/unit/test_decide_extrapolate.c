/* SPDX-License-Identifier: Apache-2.0 */
/* decide: rows with measured times hold where they gain enough, on the nodes they were measured on
 * and, carried by the model, on up to twice or half as many; chunks are found as NCCL asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "common/random.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/decide/compile.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/decide/extrapolate.h"
#include "tuner_plugin/decide/guard.h"

#define HEAD "schema = 1\n[meta]\nid = a\n"
#define TREE_HALF "64K 4M tree simple 0 over=ring/simple default_us=200 choice_us=100\n"
/* Equal shares of both at any number of nodes: what is gained stays gained. */
#define LIKE_MODELS                                                                                \
  "[model]\nallreduce tree simple 10 0 0 1000 5\nallreduce ring simple 10 0 0 1000 5\n"

static struct {
  struct decide_table table;
  struct decide_row *rows;
  size_t count;
} compiled; /* the last text */

static int release(void **state) {
  (void)state;
  free(compiled.rows);
  compiled.rows = NULL;
  return 0;
}

#define TEST(name) UNIT_TEST_WITH(name, NULL, release)

static void compile_text(const char *text, size_t ranks, size_t nodes) {
  struct profile profile;
  struct profile_error error;
  if (profile_parse(text, strlen(text), &profile, &error) != 0) {
    fail_msg("%d:%d: %s", error.line, error.column, error.text);
  }
  size_t bytes = compile_bytes(&profile, ranks, nodes);
  release(NULL);
  compiled.rows = malloc(bytes);
  compile_table(&profile, ranks, nodes, compiled.rows, &compiled.table);
  compiled.count = compiled.table.first[PROFILE_COLLECTIVE_COUNT];
  assert_true((bytes > 0) == (compiled.count > 0));
  profile_free(&profile);
}

static size_t count_rows(const char *text, size_t ranks, size_t nodes) {
  compile_text(text, ranks, nodes);
  return compiled.count;
}

/* ---- measured rows ---- */

TEST(a_gain_must_exceed_margin_and_noise) {
  assert_true(guard_is_worth(1030, 1000, 0));
  assert_false(guard_is_worth(1029, 1000, 0));
  assert_true(guard_is_worth(1030, 1000, 15));
  assert_false(guard_is_worth(1039, 1000, 20));
  assert_true(guard_is_worth(1040, 1000, 20));
  assert_false(guard_is_worth(UINT64_MAX / 2, UINT64_MAX, 0));
  assert_true(guard_is_worth(UINT64_MAX, UINT64_MAX / 2, 10));
}

TEST(rows_that_gain_too_little_are_left_out) {
#define ROWS                                                                                       \
  HEAD "[table allreduce nodes=4 ppn=8]\n"                                                         \
       "0 1K tree ll 0 over=ring/ll default_us=102 choice_us=100\n"                                \
       "1K 2K tree ll 0 over=ring/ll default_us=104 choice_us=100\n"                               \
       "2K 4K tree ll 0 over=ring/ll default_us=104 choice_us=100 noise_pct=3\n"                   \
       "4K 8K tree ll 0\n"
  compile_text(ROWS, 32, 4);
  assert_int_equal(compiled.count, 2);
  assert_int_equal(compiled.rows[0].bytes_lo, 1 << 10);
  assert_int_equal(compiled.rows[1].bytes_lo, 4 << 10);
  assert_int_equal(compiled.rows[0].choice.over, costs_cell(PROFILE_RING, PROFILE_LL));
  assert_int_equal(compiled.rows[1].choice.over, DECIDE_ANY_CELL);
}

/* NCCL's choice is the cheapest cell. */
static bool is_chosen(int cheapest_algo, int cheapest_proto) {
  float us[PROFILE_ALGORITHM_COUNT * PROFILE_PROTOCOL_COUNT];
  for (int i = 0; i < PROFILE_ALGORITHM_COUNT * PROFILE_PROTOCOL_COUNT; i++) {
    us[i] = 20.0f;
  }
  us[cheapest_algo * PROFILE_PROTOCOL_COUNT + cheapest_proto] = 10.0f;
  struct decide_costs costs = { us, PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT };
  int channels = 0;
  return decide_by_costs(&compiled.table, PROFILE_ALLREDUCE, 1 << 20, costs, &channels);
}

TEST(a_row_holds_against_the_default_it_was_measured_against) {
  compile_text(HEAD "[table allreduce nodes=4 ppn=8]\n" TREE_HALF, 32, 4);
  assert_true(is_chosen(PROFILE_RING, PROFILE_SIMPLE));
  assert_false(is_chosen(PROFILE_RING, PROFILE_LL));
  assert_false(is_chosen(PROFILE_TREE, PROFILE_SIMPLE));
}

/* ---- the model ---- */

TEST(steps_are_those_of_the_algorithms) {
  static const struct {
    enum profile_collective collective;
    enum profile_algorithm algorithm;
    double inter, intra, carried; /* for 6 nodes x 4 */
  } cases[] = {
    { PROFILE_ALLREDUCE, PROFILE_RING, 10, 36, 2 * 23.0 / 24.0 },
    { PROFILE_ALLGATHER, PROFILE_RING, 5, 18, 23.0 / 24.0 },
    { PROFILE_REDUCESCATTER, PROFILE_RING, 5, 18, 23.0 / 24.0 },
    { PROFILE_BROADCAST, PROFILE_RING, 5, 18, 1 },
    { PROFILE_REDUCE, PROFILE_RING, 5, 18, 1 },
    { PROFILE_ALLREDUCE, PROFILE_TREE, 6, 6, 2 },
    { PROFILE_ALLGATHER, PROFILE_PAT, 3, 24, 23.0 / 24.0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct profile_model model = { .collective = cases[i].collective,
                                   .algorithm = cases[i].algorithm,
                                   .base_ns = 5000,
                                   .intra_ns = 2000,
                                   .inter_ns = 30000,
                                   .bytes_per_ms = 1000000 };
    double us = 5 + 2 * cases[i].intra + 30 * cases[i].inter + cases[i].carried * 1e6 / 1000;
    double difference = extrapolate_model_us(&model, 6, 4, 1000000) - us;
    assert_true(difference < 1e-6 && difference > -1e-6);
  }
}

TEST(rows_are_carried_to_twice_and_half_the_nodes) {
  static const char text[] = HEAD "[table allreduce nodes=4 ppn=8]\n" TREE_HALF LIKE_MODELS;
  static const size_t held[] = { 3, 4, 5, 6, 7, 8 }, not_held[] = { 1, 2, 9, 16, 100 };
  for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) {
    assert_int_equal(count_rows(text, held[i] * 8, held[i]), 1);
  }
  for (size_t i = 0; i < sizeof not_held / sizeof not_held[0]; i++) {
    assert_int_equal(count_rows(text, not_held[i] * 8, not_held[i]), 0);
  }
  assert_int_equal(count_rows(text, 24, 6), 0); /* ppn 4 was not measured */
  assert_int_equal(count_rows(text, 49, 6), 0); /* uneven */
}

/* In total bytes the row is [64K, 4M), per rank [128K, 8M): both must hold. */
TEST(sizes_are_compared_in_both_ways) {
  compile_text(HEAD "[table allreduce nodes=4 ppn=8]\n" TREE_HALF LIKE_MODELS, 64, 8);
  assert_int_equal(compiled.rows[0].bytes_lo, 128 << 10);
  assert_int_equal(compiled.rows[0].bytes_hi, 4 << 20);
  compile_text(HEAD "[table allreduce nodes=8 ppn=8]\n" TREE_HALF LIKE_MODELS, 32, 4);
  assert_int_equal(compiled.rows[0].bytes_lo, 64 << 10);
  assert_int_equal(compiled.rows[0].bytes_hi, 2 << 20);
}

/* 5 nodes: a tree over them is 2 or 3 deep; each is taken for what speaks against the row. */
TEST(depth_is_taken_for_the_worse) {
#define DEEP(algo, over)                                                                           \
  HEAD "[table allreduce nodes=4 ppn=1]\n64K 4M " algo " simple 0 over=" over                      \
       "/simple default_us=1300 choice_us=1000\n[model]\nallreduce tree simple 0 0 1000 4000000 "  \
       "5\n"                                                                                       \
       "allreduce ring simple 1000 0 0 4000000 5\n"
  assert_int_equal(count_rows(DEEP("tree", "ring"), 4, 4), 1);
  assert_int_equal(count_rows(DEEP("tree", "ring"), 5, 5), 0);
  assert_int_equal(count_rows(DEEP("ring", "tree"), 5, 5), 1);
  assert_int_equal(count_rows(DEEP("ring", "tree"), 3, 3), 0);
}

TEST(what_is_not_sure_is_not_carried) {
#define FOUR "[table allreduce nodes=4 ppn=8]\n"
  static const char *const texts[] = {
    HEAD FOUR TREE_HALF, /* no models */
    HEAD FOUR TREE_HALF "[model]\nallreduce tree simple 10 0 0 1000 5\n",
    HEAD FOUR "64K 4M tree simple 0\n" LIKE_MODELS, /* nobody measured what is gained */
    /* 5 % are enough where they were measured, but not elsewhere; nor is less than the spread */
    HEAD FOUR "64K 4M tree simple 0 over=ring/simple default_us=105 choice_us=100\n" LIKE_MODELS,
    HEAD FOUR
    "64K 4M tree simple 0 over=ring/simple default_us=150 choice_us=100\n"
    "[model]\nallreduce tree simple 10 0 0 1000 60\nallreduce ring simple 10 0 0 1000 5\n",
    /* the model says that a tree of more nodes loses */
    HEAD FOUR
    "64K 4M tree simple 0 over=ring/simple default_us=130 choice_us=100\n"
    "[model]\nallreduce tree simple 0 0 900 1000 5\nallreduce ring simple 9000 0 0 1000 5\n",
    /* the other neighbour was measured, and says otherwise, or nothing */
    HEAD FOUR TREE_HALF
    "[table allreduce nodes=8 ppn=8]\n"
    "64K 16M tree ll 0 over=ring/simple default_us=200 choice_us=100\n" LIKE_MODELS,
    HEAD FOUR TREE_HALF "[table allreduce nodes=8 ppn=8]\n" LIKE_MODELS,
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_int_equal(count_rows(texts[i], 32, 4) > 0, true);
    if (count_rows(texts[i], 48, 6) != 0) {
      fail_msg("case %zu was carried to 6 nodes", i);
    }
  }
  /* Both neighbours say the same: then it holds where both do. */
  assert_int_equal(count_rows(HEAD FOUR TREE_HALF
                              "[table allreduce nodes=8 ppn=8]\n" TREE_HALF LIKE_MODELS,
                              48, 6),
                   1);
}

/* ---- anything at all ---- */

static void random_tables(char *text, size_t text_bytes, uint64_t *random) {
  static const char *const cells[] = { "tree/ll", "ring/ll", "ring/simple", "tree/simple" };
  static const char *const words[] = { "tree ll", "ring ll", "ring simple", "tree simple" };
  size_t used = (size_t)snprintf(text, text_bytes, HEAD);
  for (int nodes = 2; nodes <= 16; nodes *= 2) {
    used += (size_t)snprintf(text + used, text_bytes - used, "[table allreduce nodes=%d ppn=2]\n",
                             nodes);
    uint64_t at = 0;
    for (int row = 0; row < 12; row++) {
      uint64_t value = random_next(random);
      at += value % 3 ? 0 : 1 + (value >> 8) % 5000;
      uint64_t end = at + 1 + ((value >> 24) % 100000) * (value % 7);
      used += (size_t)snprintf(
          text + used, text_bytes - used, "%llu %llu %s 0 over=%s default_us=%llu choice_us=100\n",
          (unsigned long long)at, (unsigned long long)end, words[value >> 40 & 1],
          cells[value >> 41 & 3], (unsigned long long)(100 + (value >> 44) % 40));
      at = end;
    }
  }
  snprintf(text + used, text_bytes - used,
           "[model]\nallreduce tree ll 10 1 20 100 5\nallreduce ring ll 10 1 9 110 5\n"
           "allreduce ring simple 30 2 30 900 5\nallreduce tree simple 30 2 40 800 5\n");
}

TEST(compiled_rows_are_always_in_order) {
  static char text[16384];
  uint64_t random = 1;
  size_t carried = 0;
  for (int draw = 0; draw < 300; draw++) {
    random_tables(text, sizeof text, &random);
    for (size_t nodes = 2; nodes <= 33; nodes++) {
      compile_text(text, nodes * 2, nodes);
      for (size_t i = 0; i < compiled.count; i++) {
        assert_true(compiled.rows[i].bytes_lo < compiled.rows[i].bytes_hi);
        assert_true(i == 0 || compiled.rows[i - 1].bytes_hi <= compiled.rows[i].bytes_lo);
      }
      carried += nodes & (nodes - 1) ? compiled.count : 0;
    }
  }
  assert_true(carried > 1000);
}

/* ---- chunks ---- */

TEST(chunks_are_found_by_what_a_channel_carries) {
  compile_text(HEAD "[table allreduce nodes=4 ppn=8]\n"
                    "64K 1M tree simple 2 chunk=64K\n"
                    "1M 8M ring simple 8 chunk=200000\n"
                    "8M 16M ring ll128 4 chunk=4000\n"
                    "16M max ring ll128 4 chunk=1000\n",
               32, 4);
  static const struct {
    uint64_t bytes;
    enum profile_algorithm algorithm;
    enum profile_protocol protocol;
    int channels;
    uint32_t chunk;
  } cases[] = {
    { 32 << 10, PROFILE_TREE, PROFILE_SIMPLE, 1, 64 << 10 },
    { (32 << 10) - 1, PROFILE_TREE, PROFILE_SIMPLE, 1, 0 },
    { (512 << 10) - 1, PROFILE_TREE, PROFILE_SIMPLE, 1, 64 << 10 },
    { 512 << 10, PROFILE_TREE, PROFILE_SIMPLE, 1, 0 },
    { 128 << 10, PROFILE_RING, PROFILE_SIMPLE, 1, 200000 / 512 * 512 },
    { 128 << 10, PROFILE_RING, PROFILE_LL, 1, 0 },
    { 128 << 10, PROFILE_TREE, PROFILE_SIMPLE, 1, 64 << 10 },
    { 2 << 20, PROFILE_RING, PROFILE_LL128, 1, 3840 },
    { 4 << 20, PROFILE_RING, PROFILE_LL128, 1, 0 }, /* less than a grain */
    { 2 << 20, PROFILE_RING, PROFILE_LL128, 4, 0 },
    { UINT64_MAX, PROFILE_RING, PROFILE_LL128, 1, 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t chunk =
        decide_chunk(&compiled.table, PROFILE_ALLREDUCE, cases[i].bytes, (int)cases[i].algorithm,
                     (int)cases[i].protocol, cases[i].channels);
    if (chunk != cases[i].chunk) {
      fail_msg("case %zu: %u, not %u", i, chunk, cases[i].chunk);
    }
  }
  assert_int_equal(decide_chunk(&compiled.table, PROFILE_REDUCE, 1 << 20, 1, 2, 1), 0);
  assert_int_equal(decide_chunk(&compiled.table, -1, 1 << 20, 1, 2, 1), 0);
  assert_int_equal(decide_chunk(&compiled.table, 99, 1 << 20, 1, 2, 1), 0);
}

UNIT_MAIN(NULL, NULL)
