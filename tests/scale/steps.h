/* SPDX-License-Identifier: Apache-2.0 */
/* steps: training steps of a workload on many hosts: each computes at its own pace, and starts
 * collectives as its lines say (tests/coll/replay/workload.h).
 * Owns: nothing.  Threads: one.  Blocks: never.
 * Fails: -EINVAL with a message, for what the schedules do not model. */
#ifndef TESTS_SCALE_STEPS_H
#define TESTS_SCALE_STEPS_H

#include "tests/scale/schedule.h"
#include "tests/coll/replay/workload.h"

/* AUTO: as NCCL chooses between the two (steps.c). */
enum steps_choice { STEPS_RING, STEPS_TREE, STEPS_AUTO };

struct steps_config {
  double launch_ns;  /* of a collective */
  double jitter;     /* of each host's compute time in each step: up to this share more or less */
  double straggler;  /* share of hosts, rounded up, that compute more slowly */
  double slowdown;   /* by this factor */
  unsigned measured; /* steps */
  unsigned skipped;  /* before them */
  uint64_t seed;
  enum steps_choice choice;
  uint64_t nic_rate; /* bytes per second, for NCCL's choice */
};

struct steps_result {
  double mean_us;        /* of a step, of the slowest host */
  double compute_us;     /* of a step without collectives, of a host that is no straggler */
  unsigned rings, trees; /* collectives of a step */
};

/* So many of the hosts, rounded up, get this value, which none has. share: up to 1. */
void steps_draw_hosts(unsigned hosts, double share, uint64_t *random, double *values, double value);

int steps_run(struct schedule *schedule, const struct workload *workload,
              const struct steps_config *config, struct steps_result *result, char *error);

#endif
