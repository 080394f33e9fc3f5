/* SPDX-License-Identifier: Apache-2.0 */
/* See choice.h. The time of a call is latency + bytes / bandwidth. */
#include "tests/scale/choice.h"

#include <math.h>

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

bool choice_is_tree(unsigned hosts, unsigned gpus, uint64_t nic_rate, uint64_t bytes) {
  double processor_gbs = 20.0 * ((gpus + 1) / 2);
  double gbs = round_down(fmin((double)(nic_rate / 125000) / 8000, processor_gbs));
  return tree_us(hosts, gpus, gbs, bytes) < ring_us(hosts, gpus, gbs, bytes);
}
