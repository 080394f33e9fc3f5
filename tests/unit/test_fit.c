/* SPDX-License-Identifier: Apache-2.0 */
/* fit: profiles made from invented clusters, whose true times are known, hardly ever choose worse
 * than NCCL. STRATUS_TEST_DRAWS=1000 for the long run, STRATUS_TEST_SEED=N for clusters that nobody
 * has looked at; the figures are printed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantile.h"
#include "common/random.h"
#include "tests/lib/unit.h"
#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/model/fit.h"

static int draw_count(int usual) {
  const char *draws = getenv("STRATUS_TEST_DRAWS");
  return draws ? atoi(draws) : usual;
}

/* The seed of a draw: other clusters for each value of STRATUS_TEST_SEED. */
static uint64_t seed_of(int draw) {
  const char *seed = getenv("STRATUS_TEST_SEED");
  return (seed ? (uint64_t)strtoull(seed, NULL, 10) << 32 : 0) + (uint64_t)draw + 1;
}

/* ---- rows ---- */

static void fit(const struct sample *samples, size_t count, struct profile *profile) {
  struct fit_counts counts;
  struct profile_error error = { 0 };
  memset(profile, 0, sizeof *profile);
  if (fit_profile(samples, count, profile, &counts, &error) != 0) {
    fail_msg("%s", error.text);
  }
}

/* Measured for a table of the test. */
static struct sample added[64];
static size_t added_count;
static struct profile made;

static int begin(void **state) {
  added_count = 0;
  return 0;
}

static int end(void **state) {
  profile_free(&made);
  return 0;
}

/* "dr": by NCCL's own choice, the ring; "ct": by a choice of ours, the tree. */
static void add(uint64_t bytes, const char *cell, uint32_t channels, double us) {
  assert_in_range(added_count, 0, sizeof added / sizeof *added - 1);
  added[added_count++] = (struct sample){ .collective = PROFILE_ALLREDUCE,
                                          .bytes = bytes,
                                          .nodes = 4,
                                          .ppn = 1,
                                          .cell = { cell[1] == 't' ? PROFILE_TREE : PROFILE_RING,
                                                    PROFILE_LL, channels },
                                          .is_default = cell[0] == 'd',
                                          .n = 20,
                                          .median_us = us,
                                          .mad_us = us * 0.01 };
}

/* The rows that come of all added, for now; so many. */
static const struct profile_row *fit_rows(size_t count) {
  profile_free(&made);
  fit(added, added_count, &made);
  assert_int_equal(made.table_count, 1);
  assert_int_equal(made.tables[0].row_count, count);
  return made.tables[0].rows;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, end)

/* NCCL takes the ring. The tree is better up to between 64K and 128K. */
TEST(a_row_ends_between_sizes_where_the_gain_does) {
  for (int i = 0; i < 6; i++) {
    uint64_t bytes = UINT64_C(16384) << i;
    add(bytes, "dr", 0, 100 + 20 * i);
    add(bytes, "cr", 0, 100 + 20 * i);
    add(bytes, "ct", 0, 50 + 40 * i);
  }
  const struct profile_row *row = fit_rows(1);
  assert_int_equal(row->bytes_lo, 16384);
  assert_true(row->bytes_hi > 64 << 10 && row->bytes_hi < 128 << 10);
  assert_int_equal(row->cell.algorithm, PROFILE_TREE);
  assert_int_equal(row->over.algorithm, PROFILE_RING);
  assert_true(row->is_measured);
  assert_true(row->default_ns * 100 >= row->choice_ns * 103);
}

/* NCCL turns from the ring to the tree somewhere between 8K and 32K, as if the ring rose slowly up
 * to there: it does not, which the sizes tell at which it was asked for. Nobody asked for the tree
 * where NCCL takes it by itself. */
TEST(between_two_choices_a_row_holds_over_the_first) {
  for (int i = 0; i < 5; i++) {
    uint64_t bytes = UINT64_C(2048) << (2 * i);
    double ring_us = 20 << i, tree_us = 15 << i;
    add(bytes, i < 2 ? "dr" : "dt", 0, i < 2 ? ring_us : tree_us);
    add(bytes, i < 2 ? "ct" : "cr", 0, i < 2 ? tree_us : ring_us);
  }
  const struct profile_row *row = fit_rows(1);
  assert_int_equal(row->cell.algorithm, PROFILE_TREE);
  assert_int_equal(row->over.algorithm, PROFILE_RING);
  assert_int_equal(row->bytes_lo, 2048);
  assert_true(row->bytes_hi > 16384 && row->bytes_hi < 32768);
  assert_int_equal(row->default_ns * 3, row->choice_ns * 4);
}

TEST(what_wins_alone_needs_twice_as_much) {
  for (int gain = 4; gain <= 8; gain += 4) {
    added_count = 0;
    for (int i = 0; i < 5; i++) {
      uint64_t bytes = UINT64_C(16384) << i;
      add(bytes, "dr", 0, 100 << i);
      add(bytes, "ct", 0, (i == 2 ? (100 << i) / (1 + gain / 100.0) : (102 << i)));
    }
    fit_rows(gain == 8);
  }
}

/* 4 % at one size are enough for a cell that gains 10 % at the next, though another is faster
 * there. */
TEST(who_gains_next_to_it_is_not_alone) {
  for (int has_company = 0; has_company < 2; has_company++) {
    added_count = 0;
    for (int i = 0; i < 5; i++) {
      uint64_t bytes = UINT64_C(16384) << i;
      double us = 100 << i, tree = i == 3 && has_company ? 1 / 1.1 : 1.02;
      add(bytes, "dr", 0, us);
      add(bytes, "ct", 0, us * (i == 2 ? 1 / 1.04 : tree));
      add(bytes, "cr", 4, us * (i == 3 ? 1 / 1.3 : 1.02));
    }
    const struct profile_row *rows = fit_rows(has_company ? 2 : 1);
    assert_int_equal(rows[0].cell.algorithm, has_company ? PROFILE_TREE : PROFILE_RING);
  }
}

/* 30 % at one size and nothing at the next: the row ends where the line between them has 10 %;
 * where another cell wins at the next size, halfway. */
TEST(a_row_reaches_as_far_as_its_gain) {
  for (int has_other = 0; has_other < 2; has_other++) {
    added_count = 0;
    for (int i = 0; i < 6; i++) {
      uint64_t bytes = UINT64_C(16384) << (2 * i);
      double us = 100 << i;
      add(bytes, "dr", 0, us);
      add(bytes, "ct", 0, i < 3 ? us / 1.3 : us);
      add(bytes, "cr", 1, has_other && i > 2 ? us / 1.3 : us);
    }
    const struct profile_row *rows = fit_rows(1 + (size_t)has_other);
    assert_int_equal(rows[0].cell.algorithm, PROFILE_TREE);
    assert_int_equal(rows[0].bytes_lo, 16384);
    double share = has_other ? 0.5 : log(1.3 / 1.1) / log(1.3);
    assert_int_equal(rows[0].bytes_hi, (uint64_t)ceil((16384 << 4) * pow(4, share)));
    if (has_other) {
      assert_int_equal(rows[1].cell.channels, 1);
      assert_int_equal(rows[1].bytes_lo, rows[0].bytes_hi);
      assert_int_equal(rows[1].bytes_hi, (16384 << 10) + 1);
    }
  }
}

TEST(few_channels_are_preferred_where_they_cost_little) {
  for (int i = 0; i < 4; i++) {
    uint64_t bytes = UINT64_C(16384) << i;
    add(bytes, "dr", 0, 200 << i);
    add(bytes, "ct", 8, 100 << i);
    add(bytes, "ct", 4, 101.5 * (1 << i));
    add(bytes, "ct", 2, 104 << i);
  }
  assert_int_equal(fit_rows(1)->cell.channels, 4);
}

TEST(without_a_default_there_is_nothing_to_say) {
  struct fit_counts counts;
  struct profile_error error = { 0 };
  add(1024, "ct", 0, 10);
  assert_int_equal(fit_profile(added, added_count, &made, &counts, &error), -EINVAL);
  assert_non_null(strstr(error.text, "\"default\":true"));
}

/* As measured: Ring/LL takes longer for 8 and 16 bytes than for 32 to 2048, whoever asks for it. */
TEST(a_real_fall_is_no_gain) {
  for (int i = 0; i < 8; i++) {
    double us = i < 2 ? 75 : 50;
    add(UINT64_C(8) << i, "dr", 0, us);
    add(UINT64_C(8) << i, "cr", 1, us * 0.99);
    add(UINT64_C(8) << i, "ct", 0, 65);
  }
  const struct profile_row *row = fit_rows(1);
  assert_int_equal(row->cell.algorithm, PROFILE_TREE);
  assert_true(row->bytes_hi < 32);
}

/* The network was twice as fast on the second day, when the tree was measured once more. In both
 * runs it is slower than the ring; over all samples it would look faster. */
TEST(runs_are_compared_within_themselves) {
  for (int i = 0; i < 4; i++) {
    uint64_t bytes = UINT64_C(16384) << i;
    size_t first = added_count;
    add(bytes, "dr", 0, 200 << i);
    add(bytes, "ct", 0, 210 << i);
    add(bytes, "dr", 0, 100 << i);
    add(bytes, "ct", 0, 105 << i);
    add(bytes, "ct", 0, 50 << i); /* of a run without a default */
    add(bytes, "ct", 0, 50 << i);
    for (size_t s = first; s < added_count; s++) {
      strcpy(added[s].run, s - first < 2 ? "day1" : s - first < 4 ? "day2" : "day3");
    }
  }
  fit_rows(0);
  for (size_t s = 0; s < added_count; s++) { /* and where it is faster in both, it is */
    added[s].median_us *= added[s].is_default ? 1 : 0.5;
  }
  const struct profile_row *row = fit_rows(1);
  assert_true(row->default_ns > row->choice_ns * 19 / 10 &&
              row->default_ns < row->choice_ns * 20 / 10);
}

/* ---- quantiles ---- */

UNIT_TEST(quantiles_lie_between_values) {
  double values[] = { 5, 1, 4, 2 };
  assert_true(quantile_median(values, 4) == 3 && values[0] == 1 && values[3] == 5);
  assert_true(quantile_at(values, 4, 1) == 5 && quantile_at(values, 4, 0) == 1);
  assert_true(quantile_at(values, 3, 0.25) == 1.5);
  assert_true(quantile_median(values, 1) == 1 && quantile_median(values, 0) == 0);
}

/* ---- invented clusters, whose true times are known, and what a library that chooses by another
 * idea of them believes: machines as clouds have them ---- */

enum { SYNTHETIC_SHIFT_FIRST = 3, SYNTHETIC_SHIFT_LAST = 26 };

struct synthetic {
  uint64_t random;
  int ppn;
  double noise;     /* standard deviation of a call's time, as a share of it: 0.05 to 0.15 */
  double bus_gbs;   /* of a host */
  double inside_us; /* of a hop inside of a host, with protocol Simple */
  bool has_ll128;
  double network_us; /* true latency of the network, which is believed to be none */
  /* What is true, over what is believed. */
  double latency_factors[PROFILE_COLLECTIVE_COUNT][COSTS_CELLS];
  double rate_factors[PROFILE_COLLECTIVE_COUNT][COSTS_CELLS];
};

enum synthetic_view { SYNTHETIC_BELIEVED, SYNTHETIC_TRUE };
enum { SYNTHETIC_LAUNCHES = 4, SYNTHETIC_SAMPLES_MAX = SYNTHETIC_LAUNCHES * 24 * 22 };

enum { CALLS = 20 };

/* What all calls of a launch have in common at one size, as a share of what one call varies by;
 * half of it passes on to the next size. Launches of the demo (two and four emulated hosts) differ
 * by 0.1 to 0.3 of their calls' standard deviation, and the error of a size correlates with that of
 * the next one by 0.2 to 0.6. */
static const double launch_share = 0.3, passed_on = 0.5;

static double uniform(uint64_t *random, double low, double high) {
  return low + (high - low) * (double)(random_next(random) >> 11) / (double)(UINT64_C(1) << 53);
}

static int pick(uint64_t *random, const int *values, size_t count) {
  return values[random_next(random) % count];
}
#define PICK(random, ...)                                                                          \
  pick(random, (const int[]){ __VA_ARGS__ }, sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

/* exp of a normal variable with this standard deviation. */
static double lognormal(uint64_t *random, double deviation) {
  double u = uniform(random, 1e-12, 1), v = uniform(random, 0, 1);
  return exp(deviation * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

/* Another cluster for each seed. */
static void synthetic_draw(struct synthetic *cluster, uint64_t seed) {
  memset(cluster, 0, sizeof *cluster);
  cluster->random = seed;
  uint64_t *random = &cluster->random;
  int nics = PICK(random, 1, 1, 2, 4, 8), gbps = PICK(random, 10, 25, 50, 100, 200);
  cluster->ppn = PICK(random, 1, 2, 4, 8);
  cluster->bus_gbs = gbps / 8.0 * fmax(1, nics * cluster->ppn / 8);
  cluster->inside_us = PICK(random, 0, 1) ? 3.4 : 5.7; /* NVLink, PCIe */
  cluster->has_ll128 = PICK(random, 0, 1);
  cluster->noise = uniform(random, 0.05, 0.15);
  cluster->network_us = uniform(random, 0, 50);
  double rate = uniform(random, 0.4, 1.0), collapse = uniform(random, 1, 8);
  for (int c = 0; c < PROFILE_COLLECTIVE_COUNT; c++) {
    for (unsigned cell = 0; cell < COSTS_CELLS; cell++) {
      bool is_ll = cell_of_costs(cell, 0).protocol == PROFILE_LL;
      cluster->latency_factors[c][cell] = lognormal(random, 0.2);
      cluster->rate_factors[c][cell] = rate * lognormal(random, 0.15) / (is_ll ? collapse : 1);
    }
  }
}

/* By protocol: a call, a hop between hosts of a ring and of a tree, all in us; the parts of a hop
 * inside of a host and of the bandwidth. */
static const double base_us[] = { 6.6, 14, 8.4 }, ring_hop_us[] = { 2.7, 4, 14 },
                    tree_hop_us[] = { 5, 8.5, 14 }, inside_part[] = { 0.2, 0.5, 1 },
                    bus_part[] = { 0.5, 0.92, 1 };

struct cost {
  double latency_us, gbs;
};

static struct cost ring_cost(const struct synthetic *cluster, int protocol, double ranks,
                             double nodes, double rounds, double network_us, uint64_t bytes) {
  double steps = rounds * (ranks - 1), between = rounds * (nodes - 1);
  double latency_us = base_us[protocol] +
                      (steps - between) * cluster->inside_us * inside_part[protocol] +
                      between * (ring_hop_us[protocol] + network_us);
  bool is_bulk = protocol == PROFILE_SIMPLE && (double)bytes / ranks >= 256;
  return (struct cost){ latency_us * (is_bulk ? 1.4 : 1),
                        cluster->bus_gbs * bus_part[protocol] * ranks / steps };
}

static struct cost tree_cost(const struct synthetic *cluster, int protocol, double nodes,
                             double network_us, uint64_t bytes) {
  double up_us = (cluster->ppn - 1) * cluster->inside_us * inside_part[protocol] +
                 floor(log2(nodes)) * (tree_hop_us[protocol] + network_us);
  /* In steps from one power of two to the next, deepest at 128 KiB. */
  double dip = 1 - 0.5 * exp(-pow((floor(log2((double)bytes)) - 17) / 3, 2));
  double sent = nodes > 2 ? 2 : 1; /* how often the busiest of more hosts sends each byte */
  return (struct cost){ base_us[protocol] + 2 * up_us,
                        cluster->bus_gbs * bus_part[protocol] * 0.92 * dip / sent };
}

/* Of a call in this cell; below 0: the cell is not there. Forms and figures are like those of
 * NCCL's cost model, with what makes it hard to fit: a tree's bandwidth has a dip, and a ring's
 * latency rises at some size. */
static double synthetic_us(const struct synthetic *cluster, enum synthetic_view view,
                           enum profile_collective collective, int nodes, unsigned cell,
                           uint64_t bytes) {
  enum profile_algorithm algorithm = cell_of_costs(cell, 0).algorithm;
  int protocol = (int)cell_of_costs(cell, 0).protocol;
  bool is_reduced = collective == PROFILE_ALLREDUCE;
  double ranks = (double)nodes * cluster->ppn;
  double network_us = view == SYNTHETIC_TRUE ? cluster->network_us : 0;
  network_us *= protocol == PROFILE_SIMPLE ? 2 : 1; /* it has a flush to wait for, too */
  struct cost cost;
  if (protocol == PROFILE_LL128 && !cluster->has_ll128) {
    return -1;
  } else if (algorithm == PROFILE_RING) {
    cost = ring_cost(cluster, protocol, ranks, nodes, is_reduced ? 2 : 1, network_us, bytes);
  } else if (algorithm == PROFILE_TREE && is_reduced) {
    cost = tree_cost(cluster, protocol, nodes, network_us, bytes);
  } else if (algorithm == PROFILE_PAT && protocol == PROFILE_SIMPLE && !is_reduced &&
             cluster->ppn == 1) {
    double hops_us = floor(log2(nodes)) * (14 + network_us) / 3.5;
    cost = (struct cost){ 8 + hops_us + 2.8 * ranks, cluster->bus_gbs * 0.75 };
  } else {
    return -1;
  }
  bool is_true = view == SYNTHETIC_TRUE;
  return cost.latency_us * (is_true ? cluster->latency_factors[collective][cell] : 1) +
         (double)bytes /
             (1000 * cost.gbs * (is_true ? cluster->rate_factors[collective][cell] : 1));
}

/* As NCCL hands them to its tuner. */
static void synthetic_costs(const struct synthetic *cluster, enum profile_collective collective,
                            int nodes, uint64_t bytes, float costs[COSTS_CELLS]) {
  for (unsigned cell = 0; cell < COSTS_CELLS; cell++) {
    costs[cell] = (float)synthetic_us(cluster, SYNTHETIC_BELIEVED, collective, nodes, cell, bytes);
  }
}

static double normal(uint64_t *random) {
  return log(lognormal(random, 1));
}

/* One block of calls; now and then one meets something else on the network. */
static void time_calls(struct synthetic *cluster, double us, struct sample *sample) {
  double times[CALLS];
  for (int i = 0; i < CALLS; i++) {
    times[i] = us * lognormal(&cluster->random, cluster->noise);
    if (uniform(&cluster->random, 0, 1) < 0.02) {
      times[i] *= uniform(&cluster->random, 1.5, 4);
    }
  }
  sample->n = CALLS;
  sample->median_us = quantile_median(times, CALLS);
  for (int i = 0; i < CALLS; i++) {
    times[i] = fabs(times[i] - sample->median_us);
  }
  sample->mad_us = quantile_median(times, CALLS);
}

/* The common part of a launch at the next size. */
static double drift(struct synthetic *cluster, double *state) {
  *state = passed_on * *state + sqrt(1 - passed_on * passed_on) * normal(&cluster->random);
  return exp(launch_share * cluster->noise * *state);
}

static size_t measure_launch(struct synthetic *cluster, enum profile_collective collective,
                             int nodes, int launch, struct sample *samples) {
  double states[COSTS_CELLS + 1];
  for (unsigned i = 0; i <= COSTS_CELLS; i++) {
    states[i] = normal(&cluster->random);
  }
  size_t count = 0;
  for (int shift = SYNTHETIC_SHIFT_FIRST; shift <= SYNTHETIC_SHIFT_LAST; shift++) {
    uint64_t bytes = UINT64_C(1) << shift;
    float costs[COSTS_CELLS];
    synthetic_costs(cluster, collective, nodes, bytes, costs);
    struct costs_choice chosen;
    costs_choose((struct decide_costs){ costs, PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT },
                 &chosen);
    /* The last one is what is chosen by itself. */
    for (unsigned i = 0; i <= COSTS_CELLS; i++) {
      unsigned cell = i < COSTS_CELLS ? i : chosen.cell;
      if (costs[cell] < 0) {
        continue;
      }
      struct sample *sample = &samples[count++];
      *sample = (struct sample){ .collective = collective,
                                 .bytes = bytes,
                                 .nodes = (uint32_t)nodes,
                                 .ppn = (uint32_t)cluster->ppn,
                                 .cell = cell_of_costs(cell, 0),
                                 .is_default = i == COSTS_CELLS,
                                 .run = { (char)('a' + launch) } };
      double us = synthetic_us(cluster, SYNTHETIC_TRUE, collective, nodes, cell, bytes);
      time_calls(cluster, us * drift(cluster, &states[i]), sample);
    }
  }
  return count;
}

/* Measures every cell and what is chosen by itself at the powers of two in several launches, with
 * noise of calls and of launches. Returns how many samples were written; there is room for
 * SYNTHETIC_SAMPLES_MAX. */
static size_t synthetic_measure(struct synthetic *cluster, enum profile_collective collective,
                                int nodes, struct sample *samples) {
  size_t count = 0;
  for (int launch = 0; launch < SYNTHETIC_LAUNCHES; launch++) {
    count += measure_launch(cluster, collective, nodes, launch, samples + count);
  }
  return count;
}

struct tally {
  size_t points, overrides, false_overrides, gains;
  double log_default, log_chosen; /* against the best cell: sums of slowdowns */
};

static void judge(const struct synthetic *cluster, struct profile *profile,
                  enum profile_collective collective, int nodes, struct tally *tally) {
  size_t ranks = (size_t)(nodes * cluster->ppn);
  guard_drop_rows(profile);
  struct decide_tables tables = decide_tables_of(profile, ranks, (size_t)nodes);
  /* No power of two: those were measured. */
  for (uint64_t bytes = 12; bytes <= 256 << 20; bytes = bytes + bytes / 2) {
    assert_true(bytes & (bytes - 1));
    float costs[COSTS_CELLS];
    synthetic_costs(cluster, collective, nodes, bytes, costs);
    struct decide_costs view = { costs, PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT };
    struct costs_choice usual, chosen;
    assert_true(costs_choose(view, &usual));
    int channels = 0;
    decide_by_costs(&tables, (int)collective, bytes, view, &channels);
    assert_true(costs_choose(view, &chosen));
    double default_us = synthetic_us(cluster, SYNTHETIC_TRUE, collective, nodes, usual.cell, bytes);
    double chosen_us = synthetic_us(cluster, SYNTHETIC_TRUE, collective, nodes, chosen.cell, bytes);
    double best_us = default_us;
    for (unsigned cell = 0; cell < COSTS_CELLS; cell++) {
      double us = synthetic_us(cluster, SYNTHETIC_TRUE, collective, nodes, cell, bytes);
      best_us = us > 0 && us < best_us ? us : best_us;
    }
    tally->points++;
    tally->overrides += chosen.cell != usual.cell;
    tally->false_overrides += chosen_us > 1.03 * default_us;
    tally->gains += chosen_us * 1.03 < default_us;
    tally->log_default += log(default_us / best_us);
    tally->log_chosen += log(chosen_us / best_us);
  }
}

/* Calibrated on 2, 4 and 8 nodes, and judged there. */
UNIT_TEST(hardly_any_choice_is_worse_than_the_default) {
  static const int nodes[] = { 2, 4, 8 };
  static struct sample samples[3 * SYNTHETIC_SAMPLES_MAX];
  struct tally tally = { 0 };
  for (int draw = 0; draw < draw_count(40); draw++) {
    struct synthetic cluster;
    synthetic_draw(&cluster, seed_of(draw));
    enum profile_collective collective = draw % 3 ? PROFILE_ALLREDUCE : PROFILE_ALLGATHER;
    size_t count = 0;
    for (int i = 0; i < 3; i++) {
      count += synthetic_measure(&cluster, collective, nodes[i], samples + count);
    }
    struct profile profile;
    fit(samples, count, &profile);
    for (int i = 0; i < 3; i++) {
      judge(&cluster, &profile, collective, nodes[i], &tally);
    }
    profile_free(&profile);
  }
  print_message(
      "%zu points, %zu overrides, %zu slower than NCCL's choice by over 3 %%, %zu faster; "
      "mean slowdown %.4f, NCCL's %.4f\n",
      tally.points, tally.overrides, tally.false_overrides, tally.gains,
      exp(tally.log_chosen / (double)tally.points), exp(tally.log_default / (double)tally.points));
  assert_true(tally.overrides * 20 > tally.points);
  assert_true(tally.false_overrides * 500 <= tally.overrides);
  assert_true(tally.log_chosen < tally.log_default / 2);
}
