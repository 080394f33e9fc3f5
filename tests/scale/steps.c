/* SPDX-License-Identifier: Apache-2.0 */
/* See steps.h. */
#include "tests/scale/steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"

/* ---- ring or tree, as NCCL 2.29 chooses for AllReduce with protocol Simple on hosts of GPUs of
 * the V100's time with one NIC behind the processor ----
 *
 * Facts from NVIDIA/nccl, src/graph/tuning.cc and src/graph/search.cc at v2.29.7-1. The time of a
 * call is latency + bytes / bandwidth. */

/* Microseconds: of a call, of a hop between hosts, of one by NVLink in a ring and in a tree. */
static const double base_us = 8.4, hop_us = 14.0, ring_inside_us = 3.4, tree_inside_us = 4.0;

/* GB/s of a channel between hosts: NCCL takes one of these. */
static double round_down(double gbs) {
  static const double speeds[] = { 48, 30, 28, 24, 20,  18,  15,  12,  10,  9,
                                   7,  6,  5,  4,  3.0, 2.4, 1.2, .24, .12, 0 };
  const double *speed = speeds;
  while (speed[0] > gbs && speed[1] > 0) {
    speed++;
  }
  return *speed;
}

/* Two channels; with so many bytes for each slice a ring's hops take longer. */
static double ring_us(double hosts, double gpus, double gbs, uint64_t bytes) {
  double ranks = hosts * gpus, steps = 2 * (ranks - 1), between = 2 * (hosts - 1);
  double latency_us = base_us + (steps - between) * ring_inside_us + between * hop_us;
  bool is_bulk = bytes / (2 * (uint64_t)ranks) >= 64;
  return latency_us * (is_bulk ? 1.9 : 1) + (double)bytes / (1000 * gbs * ranks / steps);
}

/* How much of its bandwidth a tree reaches with 64 bytes, 128 and so on. */
static double tree_share(uint64_t bytes) {
  static const double shares[] = { .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                   .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9 };
  unsigned step = 0;
  for (uint64_t left = bytes >> 7; left > 0; left >>= 1) {
    step++;
  }
  return bytes < 64 || step >= sizeof shares / sizeof *shares ? 1 : shares[step];
}

static double tree_us(unsigned hosts, double gpus, double gbs, uint64_t bytes) {
  double depth = floor(log2(hosts));
  double latency_us = base_us + 2 * ((gpus - 1) * tree_inside_us + depth * hop_us);
  /* A pair of hosts sends each byte once, up or down; NVLink allows 120 GB/s. */
  double all_gbs = hosts > 2 ? gbs : gpus > 1 ? fmin(2 * gbs, 120) : 2 * gbs;
  all_gbs = fmin(.92 * all_gbs, hosts > 2 ? 10.0 : 18.5) * (gpus > 1 ? 1 : .85) / 2;
  return latency_us + (double)bytes / (1000 * all_gbs * tree_share(bytes));
}

/* At least two hosts; nic_rate: bytes per second. */
static bool choice_is_tree(unsigned hosts, unsigned gpus, uint64_t nic_rate, uint64_t bytes) {
  double processor_gbs = 20.0 * ((gpus + 1) / 2);
  double gbs = round_down(fmin((double)(nic_rate / 125000) / 8000, processor_gbs));
  return tree_us(hosts, gpus, gbs, bytes) < ring_us(hosts, gpus, gbs, bytes);
}

/* ---- steps ---- */

struct run {
  struct schedule *schedule;
  const struct steps_config *config;
  unsigned hosts;
  uint64_t random;
  double *pace;      /* by host: of all its steps */
  double *now_ns;    /* by host: its compute stream */
  double *stream_ns; /* by host: its communication stream */
  double *start_ns;
  double *ends;    /* [number of the collective - 1][host] */
  uint64_t *sizes; /* of the collectives, by number */
  enum schedule_algorithm *algorithms;
};

void steps_draw_hosts(unsigned hosts, double share, uint64_t *random, double *values,
                      double value) {
  for (unsigned left = (unsigned)ceil(share * hosts); left > 0;) {
    double *drawn = &values[random_next(random) % hosts];
    left -= *drawn != value;
    *drawn = value;
  }
}

static enum schedule_algorithm choose(const struct run *run, enum operation operation,
                                      uint64_t bytes) {
  if (operation != OPERATION_ALL_REDUCE || run->config->choice == STEPS_RING || run->hosts < 2) {
    return SCHEDULE_RING;
  }
  if (run->config->choice == STEPS_TREE) {
    return SCHEDULE_TREE;
  }
  const struct schedule_config *schedule = &run->schedule->config;
  bool is_tree = choice_is_tree(run->hosts, schedule->gpus, run->config->nic_rate, bytes);
  return is_tree ? SCHEDULE_TREE : SCHEDULE_RING;
}

/* What the workload has of collectives, and whether all of it is modelled. */
static int look_at(struct run *run, const struct workload *workload, char *error) {
  int ranks = (int)(run->hosts * run->schedule->config.gpus);
  for (size_t i = 0; i < workload->count; i++) {
    const struct workload_item *item = &workload->items[i];
    bool is_known = item->operation == OPERATION_ALL_REDUCE ||
                    item->operation == OPERATION_ALL_GATHER ||
                    item->operation == OPERATION_REDUCE_SCATTER;
    if (item->stage >= 0 || (workload_communicates(item) && (!is_known || item->group))) {
      snprintf(error, WORKLOAD_ERROR_MAX,
               "%s:%d: only all_reduce, all_gather and reduce_scatter of all ranks are simulated",
               workload->name, item->line);
      return -EINVAL;
    }
    if (item->kind == WORKLOAD_COLLECTIVE) {
      uint64_t bytes = workload_counts(workload, item, ranks).bytes;
      run->sizes[item->number - 1] = bytes;
      run->algorithms[item->number - 1] = choose(run, item->operation, bytes);
    }
  }
  return 0;
}

static void compute(struct run *run, double us) {
  for (unsigned host = 0; host < run->hosts; host++) {
    double jitter = 1 + run->config->jitter * (2 * transport_uniform(&run->random) - 1);
    run->now_ns[host] += us * 1000 * run->pace[host] * jitter;
  }
}

static void communicate(struct run *run, const struct workload_item *item) {
  double *ends = run->ends + (size_t)(item->number - 1) * run->hosts;
  for (unsigned host = 0; host < run->hosts; host++) {
    run->start_ns[host] = fmax(run->now_ns[host], run->stream_ns[host]) + run->config->launch_ns;
  }
  schedule_run(run->schedule, run->algorithms[item->number - 1], item->operation,
               run->sizes[item->number - 1], run->start_ns, ends);
  memcpy(run->stream_ns, ends, run->hosts * sizeof *ends);
}

/* Returns when the last host is done with the step. */
static double run_step(struct run *run, const struct workload *workload) {
  for (size_t i = 0; i < workload->count; i++) {
    const struct workload_item *item = &workload->items[i];
    if (item->kind == WORKLOAD_COMPUTE) {
      compute(run, item->us);
    } else if (item->kind == WORKLOAD_COLLECTIVE) {
      communicate(run, item);
    }
    for (unsigned host = 0; item->kind == WORKLOAD_WAIT && host < run->hosts; host++) {
      double end_ns = run->ends[(size_t)(item->number - 1) * run->hosts + host];
      run->now_ns[host] = fmax(run->now_ns[host], end_ns);
    }
  }
  double end_ns = 0;
  for (unsigned host = 0; host < run->hosts; host++) {
    run->now_ns[host] = fmax(run->now_ns[host], run->stream_ns[host]);
    end_ns = fmax(end_ns, run->now_ns[host]);
  }
  return end_ns;
}

static void draw_paces(struct run *run) {
  for (unsigned host = 0; host < run->hosts; host++) {
    run->pace[host] = 1;
  }
  steps_draw_hosts(run->hosts, run->config->straggler, &run->random, run->pace,
                   run->config->slowdown);
}

static void measure(struct run *run, const struct workload *workload, struct steps_result *result) {
  double last_ns = 0;
  for (unsigned step = 0; step < run->config->skipped + run->config->measured; step++) {
    double end_ns = run_step(run, workload);
    if (step >= run->config->skipped) {
      result->mean_us += (end_ns - last_ns) / 1000 / run->config->measured;
    }
    last_ns = end_ns;
  }
}

int steps_run(struct schedule *schedule, const struct workload *workload,
              const struct steps_config *config, struct steps_result *result, char *error) {
  struct run run = {
    .schedule = schedule, .config = config, .hosts = schedule->config.hosts, .random = config->seed
  };
  size_t hosts = run.hosts, collectives = workload->numbers;
  *result = (struct steps_result){ 0 };
  for (size_t i = 0; i < workload->count; i++) {
    result->compute_us += workload->items[i].us;
  }
  run.pace = transport_memory((4 + collectives) * hosts * sizeof *run.pace);
  run.now_ns = run.pace + hosts;
  run.stream_ns = run.now_ns + hosts;
  run.start_ns = run.stream_ns + hosts;
  run.ends = run.start_ns + hosts;
  run.sizes = transport_memory((collectives + 1) * sizeof *run.sizes);
  run.algorithms = transport_memory((collectives + 1) * sizeof *run.algorithms);
  int status = look_at(&run, workload, error);
  for (size_t i = 0; i < collectives; i++) {
    result->trees += run.algorithms[i] == SCHEDULE_TREE;
    result->rings += run.algorithms[i] == SCHEDULE_RING;
  }
  if (!status) {
    draw_paces(&run);
    measure(&run, workload, result);
  }
  free(run.pace);
  free(run.sizes);
  free(run.algorithms);
  return status;
}
