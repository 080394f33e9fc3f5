/* SPDX-License-Identifier: Apache-2.0 */
/* fit: what is lost in noise at each size is told by many neighbouring ones together, unless they
 * only repeat what a launch had in common. */
#include <math.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tuner_plugin/model/fit.h"

enum { LAUNCHES = 4, SIZES_MAX = 16, FIRST = 64 };

/* A tree that gains over NCCL's ring, as launches see it. */
struct plan {
  int sizes;
  double gain;    /* logs, as all here */
  double error;   /* of each launch at each size, to either side */
  bool is_common; /* a launch errs alike at all sizes */
  int odd_one;    /* a size at which the tree loses `gain` twice; -1: none */
};

static void add(struct sample *samples, size_t *count, const struct plan *plan, int size,
                int launch) {
  bool is_late = (launch + (plan->is_common ? 0 : size)) % 2;
  double gain = size == plan->odd_one ? -2 * plan->gain : plan->gain;
  gain += is_late ? plan->error : -plan->error;
  struct sample sample = { .collective = PROFILE_ALLREDUCE,
                           .bytes = (uint64_t)FIRST << size,
                           .nodes = 4,
                           .ppn = 1,
                           .algorithm = PROFILE_RING,
                           .protocol = PROFILE_LL,
                           .is_default = true,
                           .n = 100,
                           .median_us = 400,
                           .mad_us = 20,
                           .run = { (char)('a' + launch) } };
  samples[(*count)++] = sample;
  sample.is_default = false;
  sample.algorithm = PROFILE_TREE;
  sample.median_us = 400 / exp(gain);
  samples[(*count)++] = sample;
}

static void fit_plan(const struct plan *plan, struct profile *profile) {
  struct sample samples[2 * LAUNCHES * SIZES_MAX];
  size_t count = 0;
  for (int size = 0; size < plan->sizes; size++) {
    for (int launch = 0; launch < LAUNCHES; launch++) {
      add(samples, &count, plan, size, launch);
    }
  }
  struct fit_counts counts;
  struct profile_error error = { 0 };
  memset(profile, 0, sizeof *profile);
  if (fit_profile(samples, count, profile, &counts, &error) != 0) {
    fail_msg("%s", error.text);
  }
  assert_int_equal(profile->table_count, 1);
}

/* At one size, and with its neighbours, the gain is less than twice the noise. */
static void eight_weak_gains_are_one_strong(void **state) {
  (void)state;
  for (int sizes = 3; sizes <= 8; sizes += 5) {
    struct profile profile;
    fit_plan(&(struct plan){ .sizes = sizes, .gain = 0.08, .error = 0.08, .odd_one = -1 },
             &profile);
    const struct profile_table *table = &profile.tables[0];
    assert_int_equal(table->row_count, sizes == 8);
    if (sizes == 8) {
      const struct profile_row *row = &table->rows[0];
      assert_int_equal(row->algorithm, PROFILE_TREE);
      assert_int_equal(row->bytes_lo, FIRST);
      assert_int_equal(row->bytes_hi, (FIRST << 7) + 1);
      assert_int_equal(row->over_algorithm, PROFILE_RING);
      double gain = log((double)row->default_ns / (double)row->choice_ns);
      assert_true(fabs(gain - 0.08) < 0.005);
      assert_true(row->noise_permille > 20 && row->noise_permille < 40);
    }
    profile_free(&profile);
  }
}

static void a_size_that_loses_ends_them(void **state) {
  (void)state;
  struct profile profile;
  fit_plan(&(struct plan){ .sizes = 16, .gain = 0.08, .error = 0.08, .odd_one = 4 }, &profile);
  const struct profile_table *table = &profile.tables[0];
  assert_int_equal(table->row_count, 1); /* four sizes before it are too few */
  assert_true(table->rows[0].bytes_lo > FIRST << 4 && table->rows[0].bytes_lo <= FIRST << 5);
  assert_int_equal(table->rows[0].bytes_hi, (FIRST << 15) + 1);
  profile_free(&profile);
}

/* Sixteen sizes say no more than one then. */
static void what_a_launch_has_in_common_is_no_gain(void **state) {
  (void)state;
  for (int is_common = 0; is_common < 2; is_common++) {
    struct profile profile;
    fit_plan(
        &(struct plan){
            .sizes = 16, .gain = 0.08, .error = 0.08, .is_common = is_common, .odd_one = -1 },
        &profile);
    assert_int_equal(profile.tables[0].row_count, !is_common);
    profile_free(&profile);
  }
}

/* 2 % are not worth a row, however sure. */
static void a_small_gain_stays_one(void **state) {
  (void)state;
  struct profile profile;
  fit_plan(&(struct plan){ .sizes = 16, .gain = 0.02, .error = 0.001, .odd_one = -1 }, &profile);
  assert_int_equal(profile.tables[0].row_count, 0);
  profile_free(&profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(eight_weak_gains_are_one_strong),
    cmocka_unit_test(a_size_that_loses_ends_them),
    cmocka_unit_test(what_a_launch_has_in_common_is_no_gain),
    cmocka_unit_test(a_small_gain_stays_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
