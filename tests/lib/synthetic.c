/* SPDX-License-Identifier: Apache-2.0 */
/* Draws machines as clouds have them, and how far every cell is from what is believed of it. */
#include "tests/lib/synthetic.h"

#include <math.h>
#include <string.h>

#include "common/quantile.h"
#include "common/random.h"

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

void synthetic_draw(struct synthetic *cluster, uint64_t seed) {
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

double synthetic_us(const struct synthetic *cluster, enum synthetic_view view,
                    enum profile_collective collective, int nodes, unsigned cell, uint64_t bytes) {
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

void synthetic_costs(const struct synthetic *cluster, enum profile_collective collective, int nodes,
                     uint64_t bytes, float costs[COSTS_CELLS]) {
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

size_t synthetic_measure(struct synthetic *cluster, enum profile_collective collective, int nodes,
                         struct sample *samples) {
  size_t count = 0;
  for (int launch = 0; launch < SYNTHETIC_LAUNCHES; launch++) {
    count += measure_launch(cluster, collective, nodes, launch, samples + count);
  }
  return count;
}
