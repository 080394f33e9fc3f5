/* SPDX-License-Identifier: Apache-2.0 */
/* Draws machines as clouds have them, then moves every figure that NCCL takes for granted. */
#include "tests/lib/synthetic.h"

#include <math.h>
#include <string.h>

#include "common/random.h"
#include "tuner_plugin/model/interpolate.h"
#include "tuner_plugin/model/nccl_graph.h"

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
  struct nccl_machine machine = {
    .gpus = 8,
    .nics = PICK(random, 1, 1, 2, 4, 8),
    .mbps = PICK(random, 10000, 25000, 50000, 100000, 200000),
    .links = PICK(random, 0, 12, 18),
    .near = PICK(random, 0, 1),
    .cc = PICK(random, 70, 80, 90, 100),
    .cpu = PICK(random, 0, 1) ? NCCL_CPU_INTEL : NCCL_CPU_AMD,
  };
  cluster->ppn = PICK(random, 1, 2, 4, 8);
  cluster->noise = uniform(random, 0.05, 0.15);
  cluster->told.release = PICK(random, 22105, 22203, 22304, 22507, 22809, 22907, 23007);
  cluster->told.nodes = 2;
  cluster->told.ppn = cluster->ppn;
  nccl_graph_estimate(&machine, &cluster->told);
  cluster->real = cluster->told;
  double latency_us = uniform(random, 0, 50);
  cluster->real.ring.latency_us = cluster->real.tree.latency_us = (float)latency_us;
  double rate = uniform(random, 0.4, 1.0), collapse = uniform(random, 1, 8);
  for (int c = 0; c < PROFILE_COLLECTIVE_COUNT; c++) {
    for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
      for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
        cluster->latency_factors[c][a][p] = lognormal(random, 0.2);
        cluster->rate_factors[c][a][p] =
            rate * lognormal(random, 0.15) / (p == PROFILE_LL ? collapse : 1);
      }
    }
  }
}

void synthetic_models(const struct synthetic *cluster, int nodes, struct nccl_model *told,
                      struct nccl_model *real) {
  struct nccl_topology topology = cluster->told;
  topology.nodes = nodes;
  nccl_model_build(&topology, told);
  topology = cluster->real;
  topology.nodes = nodes;
  nccl_model_build(&topology, real);
  for (int c = 0; c < PROFILE_COLLECTIVE_COUNT; c++) {
    for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
      for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
        real->latency_us[c][a][p] *= (float)cluster->latency_factors[c][a][p];
        real->gbs[c][a][p] *= (float)cluster->rate_factors[c][a][p];
      }
    }
  }
}

double synthetic_us(const struct nccl_model *real, enum profile_collective collective,
                    struct nccl_cell cell, uint64_t bytes) {
  nccl_costs costs;
  nccl_model_costs(real, collective, bytes, costs);
  return (double)costs[cell.algorithm][cell.protocol];
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
  sample->median_us = interpolate_median(times, CALLS);
  sample->p99_us = times[CALLS - 1];
  for (int i = 0; i < CALLS; i++) {
    times[i] = fabs(times[i] - sample->median_us);
  }
  sample->mad_us = interpolate_median(times, CALLS);
}

/* The common part of a launch at the next size. */
static double drift(struct synthetic *cluster, double *state) {
  *state = passed_on * *state + sqrt(1 - passed_on * passed_on) * normal(&cluster->random);
  return exp(launch_share * cluster->noise * *state);
}

static size_t measure_launch(struct synthetic *cluster, enum profile_collective collective,
                             int nodes, int launch, struct sample *samples) {
  enum { CELLS = PROFILE_ALGORITHM_COUNT * PROFILE_PROTOCOL_COUNT };
  double states[CELLS + 1];
  for (int i = 0; i <= CELLS; i++) {
    states[i] = normal(&cluster->random);
  }
  struct nccl_model told, real;
  synthetic_models(cluster, nodes, &told, &real);
  size_t count = 0;
  for (int shift = SYNTHETIC_SHIFT_FIRST; shift <= SYNTHETIC_SHIFT_LAST; shift++) {
    uint64_t bytes = UINT64_C(1) << shift;
    nccl_costs costs;
    struct nccl_cell chosen;
    nccl_model_costs(&told, collective, bytes, costs);
    if (!nccl_model_choose(costs, &chosen)) {
      continue;
    }
    struct sample sample = { .collective = collective,
                             .bytes = bytes,
                             .nodes = (uint32_t)nodes,
                             .ppn = (uint32_t)cluster->ppn,
                             .algorithm = chosen.algorithm,
                             .protocol = chosen.protocol,
                             .is_default = true,
                             .run = { (char)('a' + launch) } };
    time_calls(cluster,
               synthetic_us(&real, collective, chosen, bytes) * drift(cluster, &states[CELLS]),
               &sample);
    samples[count++] = sample;
    sample.is_default = false;
    for (int i = 0; i < CELLS; i++) {
      struct nccl_cell cell = { (enum profile_algorithm)(i / PROFILE_PROTOCOL_COUNT),
                                (enum profile_protocol)(i % PROFILE_PROTOCOL_COUNT) };
      if (costs[cell.algorithm][cell.protocol] >= 0) {
        sample.algorithm = cell.algorithm;
        sample.protocol = cell.protocol;
        time_calls(cluster,
                   synthetic_us(&real, collective, cell, bytes) * drift(cluster, &states[i]),
                   &sample);
        samples[count++] = sample;
      }
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
