/* SPDX-License-Identifier: Apache-2.0 */
/* decide: the row that is found is the row that the profile's text says, for every size and shape.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/decide/guard.h"

static void parse(const char *text, struct profile *profile) {
  struct profile_error error = { 0 };
  int result = profile_parse(text, strlen(text), profile, &error);
  if (result != 0) {
    fail_msg("%d:%d: %s", error.line, error.column, error.text);
  }
}

static const char profile_text[] = "schema = 1\n[meta]\nid = test\n"
                                   "[table allreduce nodes=4 ppn=8]\n"
                                   "8 64K tree ll 0\n"
                                   "1M 2M ring ll128 3\n"
                                   "2M max ring simple 7\n"
                                   "[table broadcast nodes=4 ppn=8]\n"
                                   "0 1 ring ll 1\n"
                                   "[table allreduce nodes=1 ppn=8]\n"
                                   "0 max ring ll 1\n";

UNIT_TEST(finds_rows_by_size) {
  static const struct {
    int coll;
    uint64_t bytes;
    int algo; /* -1: no row */
    int channels;
  } expected[] = {
    { PROFILE_ALLREDUCE, 0, -1, 0 },
    { PROFILE_ALLREDUCE, 7, -1, 0 },
    { PROFILE_ALLREDUCE, 8, PROFILE_TREE, 0 },
    { PROFILE_ALLREDUCE, 65535, PROFILE_TREE, 0 },
    { PROFILE_ALLREDUCE, 65536, -1, 0 },
    { PROFILE_ALLREDUCE, 1048575, -1, 0 },
    { PROFILE_ALLREDUCE, 1048576, PROFILE_RING, 3 },
    { PROFILE_ALLREDUCE, 2097151, PROFILE_RING, 3 },
    { PROFILE_ALLREDUCE, 2097152, PROFILE_RING, 7 },
    { PROFILE_ALLREDUCE, UINT64_C(1) << 40, PROFILE_RING, 7 },
    { PROFILE_BROADCAST, 0, PROFILE_RING, 1 },
    { PROFILE_BROADCAST, 1, -1, 0 },
    { PROFILE_REDUCE, 8, -1, 0 },
    { PROFILE_ALLGATHER, 8, -1, 0 },
    { -1, 8, -1, 0 },
    { PROFILE_COLLECTIVE_COUNT, 8, -1, 0 },
    { 14, 8, -1, 0 },
    { INT32_MAX, 8, -1, 0 },
    { INT32_MIN, 8, -1, 0 },
  };
  struct profile profile;
  parse(profile_text, &profile);
  struct decide_tables tables = decide_tables_of(&profile, 32, 4);
  assert_int_equal(tables.row_count, 4);
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    const struct profile_row *row = decide_find(&tables, expected[i].coll, expected[i].bytes);
    if (expected[i].algo < 0) {
      assert_null(row);
    } else {
      assert_non_null(row);
      assert_int_equal(row->algorithm, expected[i].algo);
      assert_int_equal(row->channels, expected[i].channels);
    }
  }
  profile_free(&profile);
}

UNIT_TEST(other_shapes_have_no_rows) {
  static const struct {
    size_t ranks;
    size_t nodes;
  } shapes[] = { { 8, 1 },           { 1, 1 },
                 { 33, 4 },          { 31, 4 },
                 { 4, 4 },           { 32, 8 },
                 { 16, 2 },          { 64, 8 },
                 { 0, 0 },           { 0, 4 },
                 { 8, 0 },           { 3, 4 },
                 { SIZE_MAX, 1 },    { SIZE_MAX, SIZE_MAX },
                 { SIZE_MAX - 3, 4 } };
  struct profile profile;
  parse(profile_text, &profile);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    struct decide_tables tables = decide_tables_of(&profile, shapes[i].ranks, shapes[i].nodes);
    assert_int_equal(tables.row_count, 0);
    for (int coll = -1; coll <= PROFILE_COLLECTIVE_COUNT; coll++) {
      assert_null(decide_find(&tables, coll, 1048576));
    }
  }
  profile_free(&profile);
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

UNIT_TEST(rows_that_gain_too_little_are_out) {
  struct profile profile;
  parse("schema = 1\n[meta]\nid = test\n[table allreduce nodes=4 ppn=8]\n"
        "8 64 ring ll 0 over=tree/ll default_us=102 choice_us=100 noise_pct=1\n"
        "64 1K ring ll 1 over=tree/ll default_us=110 choice_us=100 noise_pct=1\n"
        "1K 2K ring ll 2\n",
        &profile);
  guard_drop_rows(&profile);
  struct decide_tables tables = decide_tables_of(&profile, 32, 4);
  assert_int_equal(tables.row_count, 2);
  assert_null(decide_find(&tables, PROFILE_ALLREDUCE, 8));
  assert_int_equal(decide_find(&tables, PROFILE_ALLREDUCE, 64)->channels, 1);
  assert_int_equal(decide_find(&tables, PROFILE_ALLREDUCE, 1024)->channels, 2);
  profile_free(&profile);
}

/* It finds what a linear search over the rows does. */
static void assert_found(const struct profile_table *table, uint64_t bytes) {
  const struct profile_row *found = NULL;
  for (size_t i = 0; i < table->row_count; i++) {
    if (bytes >= table->rows[i].bytes_lo && bytes < table->rows[i].bytes_hi) {
      found = &table->rows[i];
    }
  }
  assert_ptr_equal(profile_find_row(table, bytes), found);
}

/* Against a linear search, with 1 to 200 rows, some of which touch and some leave gaps. */
UNIT_TEST(agrees_with_linear_search) {
  uint64_t random = 20;
  for (int row_count = 1; row_count <= 200; row_count += 1 + row_count / 8) {
    static char text[32768];
    int used = snprintf(text, sizeof text,
                        "schema = 1\n[meta]\nid = test\n[table reducescatter nodes=3 ppn=2]\n");
    uint64_t low = next_random(&random) % 3;
    uint64_t high = 0;
    for (int i = 0; i < row_count; i++) {
      high = low + 1 + next_random(&random) % 9;
      used += snprintf(text + used, sizeof text - (size_t)used, "%llu %llu ring simple %d\n",
                       (unsigned long long)low, (unsigned long long)high, i % 64);
      low = high + next_random(&random) % 3;
    }
    struct profile profile;
    parse(text, &profile);
    assert_int_equal(profile.tables[0].row_count, row_count);
    for (uint64_t bytes = 0; bytes < high + 4; bytes++) {
      assert_found(&profile.tables[0], bytes);
    }
    profile_free(&profile);
  }
}

/* At each border and beside it: rows crowded at one size, over all octaves, up to the largest size;
 * with gaps and without. */
UNIT_TEST(finds_rows_however_they_are_spread) {
  enum { ROWS = 500 };
  static const struct {
    uint64_t first, apart, gap;
    int doubled_every; /* rows after which they lie twice as far apart; 0: never */
  } spreads[] = {
    { 0, 1024, 0, 0 },
    { 1, 1023, 0, 0 },
    { 0, 1000, 24, 0 },
    { 3, 1, 1, 0 },
    { (UINT64_C(1) << 40) - 100, 1, 0, 0 },
    { (UINT64_C(1) << 40) - 100, 2, 3, 0 },
    { (UINT64_C(1) << 63) - 250, 3, 0, 0 },
    { UINT64_MAX - ROWS, 1, 0, 0 },
    { 0, 1, 0, 9 },
    { 8, 8, 0, 10 },
    { 8, 8, 2, 10 },
  };
  for (size_t i = 0; i < sizeof spreads / sizeof spreads[0]; i++) {
    static struct profile_row rows[ROWS];
    uint64_t low = spreads[i].first, apart = spreads[i].apart;
    for (int row = 0; row < ROWS; row++) {
      rows[row] = (struct profile_row){ .bytes_lo = low, .bytes_hi = low + apart };
      low += apart + spreads[i].gap;
      int every = spreads[i].doubled_every;
      apart *= every > 0 && row % every == every - 1 ? 2 : 1;
    }
    const struct profile_table table = { .rows = rows, .row_count = ROWS };
    for (int row = 0; row < ROWS; row++) {
      for (int beside = -2; beside <= 2; beside++) {
        assert_found(&table, rows[row].bytes_lo + (uint64_t)(int64_t)beside);
        assert_found(&table, rows[row].bytes_hi + (uint64_t)(int64_t)beside);
      }
    }
    for (unsigned bit = 0; bit < 64; bit++) {
      assert_found(&table, UINT64_C(1) << bit);
      assert_found(&table, (UINT64_C(1) << bit) - 1);
    }
    assert_found(&table, UINT64_MAX);
  }
}

UNIT_MAIN(NULL, NULL)
