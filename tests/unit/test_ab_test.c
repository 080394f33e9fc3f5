/* SPDX-License-Identifier: Apache-2.0 */
/* compare: what counts as slower, and which rows of a profile must go. */
#include <string.h>

#include "tests/lib/json_text.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/tools/calibrate/ab_test.h"

enum { ROUNDS = 5 };

static const char text[] =
    "{'schema': 2, 'id': 'x', 'tables': ["
    "{'coll': 'allreduce', 'nodes': 2, 'ppn': 1, 'rows': ["
    "{'bytes_lo': 8, 'bytes_hi': 64, 'algo': 'tree', 'proto': 'll'},"
    "{'bytes_lo': 64, 'bytes_hi': 512, 'algo': 'tree', 'proto': 'simple'},"
    "{'bytes_lo': 1048576, 'bytes_hi': 4194304, 'algo': 'ring', 'proto': 'simple', 'channels': 2}"
    "]}, {'coll': 'allreduce', 'nodes': 4, 'ppn': 1, 'rows': ["
    "{'bytes_lo': 8, 'bytes_hi': 64, 'algo': 'tree', 'proto': 'll'}]},"
    "{'coll': 'allgather', 'nodes': 2, 'ppn': 1, 'rows': ["
    "{'bytes_lo': 8, 'bytes_hi': 64, 'algo': 'ring', 'proto': 'll'}]}]}";

static struct profile profile;
static struct ab_test test;

static int begin(void **state) {
  struct profile_error error;
  const char *json = json_text(text);
  test = (struct ab_test){ 0 };
  return profile_parse(json, strlen(json), &profile, &error);
}

static int end(void **state) {
  ab_test_free(&test);
  profile_free(&profile);
  return 0;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, end)

/* Runs of one size: `scatter` is the difference of neighbouring runs, as a part of the time. */
static void add(enum profile_collective collective, uint64_t bytes, double default_us,
                double profile_us, double scatter) {
  for (int round = 0; round < ROUNDS; round++) {
    double factor = 1 + scatter * (round - ROUNDS / 2);
    struct bench_json_row row = { .collective = collective, .bytes = bytes };
    row.median_us = default_us * factor;
    assert_int_equal(ab_test_add(&test, &row, false), 0);
    row.median_us = profile_us * factor;
    assert_int_equal(ab_test_add(&test, &row, true), 0);
  }
}

TEST(slower_is_more_than_noise) {
  add(PROFILE_ALLREDUCE, 8, 100, 102.9, 0);
  add(PROFILE_ALLREDUCE, 16, 100, 103.1, 0);
  add(PROFILE_ALLREDUCE, 64, 100, 120, 0.08); /* scatters by 8 %: says nothing */
  add(PROFILE_ALLREDUCE, 128, 100, 96, 0);
  add(PROFILE_ALLREDUCE, 4096, 100, 100, 0);
  ab_test_judge(&test, &profile, 2, 1);
  static const bool slower[] = { false, true, false, false, false };
  static const bool chosen[] = { true, true, true, true, false };
  for (size_t i = 0; i < test.count; i++) {
    assert_int_equal(test.points[i].is_slower, slower[i]);
    assert_int_equal(test.points[i].is_chosen, chosen[i]);
  }
  assert_true(ab_test_sum(&test).control == 0);
  assert_true(test.points[3].is_faster);
  assert_int_equal(ab_test_sum(&test).slower, 1);
  assert_int_equal(ab_test_sum(&test).faster, 1);
  assert_true(test.points[2].tolerance > 0.2 && test.points[2].tolerance < 0.3);
}

/* Three of five launches drew good paths, two drew bad ones. */
TEST(launches_of_two_kinds_scatter) {
  static const double times_us[ROUNDS] = { 60, 105, 60, 60, 105 };
  for (int round = 0; round < ROUNDS; round++) {
    struct bench_json_row row = { .collective = PROFILE_ALLREDUCE, .bytes = 8 };
    row.median_us = times_us[round];
    assert_int_equal(ab_test_add(&test, &row, false), 0);
    row.median_us = times_us[ROUNDS - 1 - round] + (round == 2 ? 45 : 0);
    assert_int_equal(ab_test_add(&test, &row, true), 0);
  }
  ab_test_judge(&test, &profile, 2, 1);
  assert_true(test.points[0].ratio == 105 / 60.0 && !test.points[0].is_slower);
}

TEST(rows_that_do_not_hold_go) {
  add(PROFILE_ALLREDUCE, 8, 100, 99, 0); /* the row is cut between 8 and 16 */
  add(PROFILE_ALLREDUCE, 16, 100, 110, 0);
  add(PROFILE_ALLREDUCE, 32, 100, 101, 0); /* nothing is gained in what is left there */
  add(PROFILE_ALLREDUCE, 64, 100, 90, 0);  /* gains over all its sizes */
  add(PROFILE_ALLREDUCE, 128, 100, 102, 0);
  add(PROFILE_ALLGATHER, 8, 100, 101, 0); /* no gain, and its table is empty then */
  ab_test_judge(&test, &profile, 2, 1);
  assert_int_equal(ab_test_drop_rows(&test, &profile, 2, 1), 2);
  assert_int_equal(profile.table_count, 2);
  const struct profile_table *table = profile_find_table(&profile, PROFILE_ALLREDUCE, 2, 1);
  assert_int_equal(table->row_count, 3);
  assert_int_equal(table->rows[0].bytes_lo, 8);
  assert_int_equal(table->rows[0].bytes_hi, 12);
  assert_int_equal(table->rows[1].bytes_lo, 64);
  assert_int_equal(table->rows[2].bytes_lo, 1 << 20); /* nothing was measured there */
  assert_int_equal(profile_find_table(&profile, PROFILE_ALLREDUCE, 4, 1)->row_count, 1);
}

/* Within their noise as both are, a row that is far slower has not shown that it holds. */
TEST(far_slower_goes_whatever_the_noise) {
  add(PROFILE_ALLREDUCE, 8, 100, 80, 0.20);
  add(PROFILE_ALLREDUCE, 32, 100, 109, 0.20);
  add(PROFILE_ALLREDUCE, 64, 100, 80, 0.20);
  add(PROFILE_ALLREDUCE, 256, 100, 111, 0.20);
  ab_test_judge(&test, &profile, 2, 1);
  assert_int_equal(ab_test_sum(&test).slower, 0);
  assert_int_equal(ab_test_drop_rows(&test, &profile, 2, 1), 1);
  const struct profile_table *table = profile_find_table(&profile, PROFILE_ALLREDUCE, 2, 1);
  assert_int_equal(table->rows[0].bytes_hi, 64);
  assert_int_equal(table->rows[1].bytes_lo, 64);
  assert_int_equal(table->rows[1].bytes_hi, 128);
}

/* Three sizes scatter by 4 %; that the runs of a fourth are all alike is luck. */
TEST(noise_is_that_of_most_sizes) {
  add(PROFILE_ALLREDUCE, 8, 100, 104, 0);
  for (uint64_t bytes = 16; bytes <= 64; bytes *= 2) {
    add(PROFILE_ALLREDUCE, bytes, 100, 100, 0.04);
  }
  add(PROFILE_ALLGATHER, 8, 100, 104, 0); /* of a collective of its own */
  ab_test_judge(&test, &profile, 2, 1);
  assert_false(test.points[0].is_slower);
  assert_true(test.points[4].is_slower);
}
