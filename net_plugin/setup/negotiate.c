/* SPDX-License-Identifier: Apache-2.0 */
/* See negotiate.h. */
#include "net_plugin/setup/negotiate.h"

#include "net_plugin/setup/limits.h"

static uint32_t lesser(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

struct conn_params params_of_listener(const struct settings *settings, unsigned remote_keys) {
  struct conn_params params = settings->params;
  params.lanes = WIRE_MAX_LANES;
  params.chunk_bytes = WIRE_MAX_CHUNK_BYTES;
  params.remote_keys = (uint8_t)remote_keys;
  params.codec = settings->policy.compress != POLICY_COMPRESS_OFF ? params.codec : 0;
  return params;
}

enum lane_cipher params_cipher(const struct conn_params *agreed) {
  return agreed->ciphers ? (enum lane_cipher)__builtin_ctz(agreed->ciphers) : LANE_PLAIN;
}

struct conn_params negotiate(const struct conn_params *ours, const struct conn_params *theirs) {
  unsigned ciphers = ours->ciphers & theirs->ciphers;
  struct conn_params agreed = *ours;
  agreed.lanes = (uint16_t)lesser(ours->lanes, theirs->lanes);
  agreed.chunk_bytes = lesser(ours->chunk_bytes, theirs->chunk_bytes);
  agreed.eager_bytes = lesser(ours->eager_bytes, theirs->eager_bytes);
  agreed.wants_checksums = ours->wants_checksums || theirs->wants_checksums;
  agreed.remote_keys = (uint8_t)lesser(ours->remote_keys, theirs->remote_keys);
  agreed.ciphers = (uint8_t)(ciphers & -ciphers);
  agreed.codec = agreed.remote_keys == 0 && ours->codec == theirs->codec ? ours->codec : 0;
  return agreed;
}

struct link_config negotiate_link(enum link_role role, const struct conn_params *agreed,
                                  const struct settings *settings, unsigned paths) {
  struct link_config config = { .role = role,
                                .eager_bytes = agreed->eager_bytes,
                                .eager_slots = agreed->eager_bytes ? SETTINGS_EAGER_SLOTS : 0,
                                .wants_checksums = agreed->wants_checksums,
                                .remote_keys = agreed->remote_keys,
                                .timeout_ns = settings->link_timeout_ns,
                                .stopped_timeout_ns = settings->stopped_timeout_ns };
  struct policy_config *policy = &config.policy;
  policy->compress = POLICY_COMPRESS_ON;
  if (role == LINK_SENDER) {
    *policy = settings->policy;
    policy->paths = paths;
    /* One flow at least over each NIC of either side. */
    unsigned first = policy->first_lanes > paths ? policy->first_lanes : paths;
    policy->first_lanes = lesser(first, agreed->lanes);
  }
  policy->lanes = agreed->lanes;
  policy->chunk_bytes = agreed->chunk_bytes;
  policy->compress = agreed->codec ? policy->compress : POLICY_COMPRESS_OFF;
  return config;
}
