/* SPDX-License-Identifier: Apache-2.0 */
/* policy_model: the only connection of an engine in a small model of a network, which tells
 * policy_shared what passed as a link's policy does. Messages follow each other after pauses; each
 * flow has a cap, and a burst that passes above it.
 *
 * Owns: nothing; the struct is the caller's.  Threads: one.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_POLICY_MODEL_H
#define TESTS_LIB_POLICY_MODEL_H

#include "net_plugin/policy/policy_shared.h"

#define POLICY_MODEL_MS 1000000ull
#define POLICY_MODEL_SECOND 1000000000ull
#define POLICY_MODEL_NIC 500000ull /* 4 Gb/s, in bytes per ms */

/* Rates in bytes per ms; before coding but for the network's. */
struct policy_model {
  struct policy_shared shared;
  uint64_t now_ns, random;
  unsigned first_flows;     /* at FLOW_COUNT_GUESS */
  uint64_t nic, cap;        /* what the NIC carries, and each flow */
  uint64_t cpu, coding_cpu; /* what threads carry, without coding and with */
  uint64_t coding_ps;       /* what coding is seen to take of a byte; 0: as coding_cpu says */
  unsigned coded_percent;   /* chunks are so long when compressed; 0: never compressed */
  unsigned noise_percent;   /* of all rates, for each measurement */
  uint64_t message_bytes, burst_bytes, pause_ns; /* message 0: bulk without pauses */

  uint64_t on_ns;   /* that chunks were compressed, in all */
  unsigned changes; /* of the level, in all; the test may begin anew */
};

void policy_model_init(struct policy_model *model, const struct policy_model *config,
                       uint64_t seed);
void policy_model_run(struct policy_model *model, uint64_t duration_ns);

#endif
