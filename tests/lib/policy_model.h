/* SPDX-License-Identifier: Apache-2.0 */
/* policy_model: the connections of one engine in a small model of a network, which tell
 * policy_shared what passed as a link's policy does. Messages of a connection follow each other
 * after pauses; each flow has a cap, and a burst that passes above it.
 *
 * Owns: nothing; the struct is the caller's.  Threads: one.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_POLICY_MODEL_H
#define TESTS_LIB_POLICY_MODEL_H

#include "net_plugin/policy/policy_shared.h"

#define POLICY_MODEL_MS 1000000ull
#define POLICY_MODEL_SECOND 1000000000ull
#define POLICY_MODEL_NIC 500000ull /* 4 Gb/s, in bytes per ms */

/* Rates in bytes per ms, of a connection; before coding but for the network's. */
struct policy_model {
  struct policy_shared shared;
  uint64_t now_ns, random;
  unsigned connections;
  unsigned first_flows;     /* of a connection, at FLOW_COUNT_GUESS */
  uint64_t nic, cap;        /* what the NIC carries, and each flow */
  uint64_t cpu, coding_cpu; /* what threads carry, without coding and with */
  uint64_t coding_ps;       /* what coding is seen to take of a byte; 0: as coding_cpu says */
  unsigned coded_percent;   /* chunks are so long when compressed; 0: never compressed */
  unsigned noise_percent;   /* of all rates, for each measurement */
  uint64_t message_bytes, burst_bytes, pause_ns; /* message 0: bulk without pauses */
  bool never_opens;                              /* flows above the first guess */

  uint64_t delivered, in_flight_ns, on_ns; /* totals so far */
  unsigned changes;                        /* of the level */
};

/* Connections join. */
void policy_model_init(struct policy_model *model, const struct policy_model *config,
                       uint64_t seed);
void policy_model_run(struct policy_model *model, uint64_t duration_ns);
unsigned policy_model_flows(const struct policy_model *model); /* of a connection */
/* Bytes per ms under load since the last call of policy_model_reset. */
uint64_t policy_model_rate(const struct policy_model *model);
void policy_model_reset(struct policy_model *model);

#endif
