/* SPDX-License-Identifier: Apache-2.0 */
/* settings: what this side wants for its connections, from parameters and profile, and its
 * identity. Owns: the values taken from a profile.  Threads: any; settings_use_profile before the
 * first connection. Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_SETTINGS_H
#define NET_PLUGIN_SETUP_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/policy.h"
#include "net_plugin/setup/handshake.h"

struct profile;

/* Lanes per connection and NIC to begin with where neither user nor profile sets them. NCCL opens
 * at least two channels, each with connections of its own, so a pair of hosts has twice as many
 * flows: enough to fill a NIC whose flows are capped at an eighth of it. More flows cost latency
 * where no cap is in the way: each holds a queue of its own. Training steps of hf_Bert and alexnet
 * on 8 hosts without caps (scripts/steps), stratus beside Socket: 1.03 and 1.02 of its time with
 * 8, 1.01 and 1.01 with 4, 1.01 and 1.00 with 2; on 4 hosts with caps of an eighth, where the
 * others are still to be learned: 215 and 105 ms with 8, 218 and 114 with 4, 284 and 149 with 2. */
#define SETTINGS_LANES_PER_NIC 4
/* The least of a group's connection: another one takes over where one breaks. */
#define SETTINGS_GROUP_LANES_PER_NIC 2
/* Of messages of up to STRATUS_EAGER_BYTES, 16K: with 128K AllReduce touched new memory in its
 * first 30 operations, 128 KiB 1240 us each in the first ten after two, 580 with 16K; 1 MiB 5260
 * and 2842 (2 hosts, flows capped at an eighth of the NIC, medians of 4 rounds). */
#define SETTINGS_EAGER_SLOTS 32
/* chunk_bytes is so many times usual_chunk_bytes unless the user set it. A chunk costs the two ends
 * about 4 us: 2 connections of one flow between hosts without limits, messages of 512 KiB, 7.9 GB/s
 * with chunks of 128 KiB, 9.5 with 512 KiB, no more with 1 MiB (stratus-net perf). */
#define SETTINGS_QUICK_CHUNKS 4u

struct settings {
  /* learns_lanes: neither the user nor the policy sets how many. compress OFF: compressed chunks
   * are not taken either. paths, ablated and shared are not settings. */
  struct policy_config policy;
  const struct policy_ops *policy_ops;
  uint32_t eager_bytes;
  uint16_t eager_slots;
  uint64_t link_timeout_ns, stopped_timeout_ns, connect_timeout_ns;
  bool wants_checksums;
  bool wants_encryption;
  uint8_t ciphers; /* bits 1 << enum lane_cipher; 0: no encryption, or none works here */
};

/* The [net] part of a profile gives defaults that parameters override. NULL: none. */
void settings_use_profile(const struct profile *profile);
/* The profile's word for STRATUS_COLLNET; empty: none. */
const char *settings_profile_collnet(void);
/* nics: how many the device has; each gets its share of the lanes. */
void settings_get(unsigned nics, struct settings *settings);
/* The connection is one of a group that sends to so many peers at the same time; 0: of none. Unless
 * the user set their number, these share twice the lanes of one connection, and where that is less
 * for each than otherwise it is not learned. Evidence: collnet/README.md, "Flows". */
void settings_of_group(unsigned nics, unsigned group_peers, struct settings *settings);

const char *settings_host_name(void);
/* Random: identifies this process, also where host names and pids are equal, as in containers. */
uint32_t settings_process(void);

#endif
