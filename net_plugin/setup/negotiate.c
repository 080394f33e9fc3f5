/* SPDX-License-Identifier: Apache-2.0 */
/* See negotiate.h. */
#include "net_plugin/setup/negotiate.h"

#include "net_plugin/setup/limits.h"

static uint32_t lesser(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

struct terms terms_of_listener(const struct settings *settings, unsigned remote_keys) {
  struct terms terms = settings->terms;
  terms.lanes = WIRE_MAX_LANES;
  terms.chunk_bytes = WIRE_MAX_CHUNK_BYTES;
  terms.remote_keys = (uint8_t)remote_keys;
  terms.codec = settings->policy.compress != POLICY_COMPRESS_OFF ? terms.codec : 0;
  return terms;
}

enum lane_cipher terms_cipher(const struct terms *agreed) {
  return agreed->ciphers ? (enum lane_cipher)__builtin_ctz(agreed->ciphers) : LANE_PLAIN;
}

struct terms negotiate(const struct terms *ours, const struct terms *theirs) {
  unsigned ciphers = ours->ciphers & theirs->ciphers;
  struct terms agreed = {
    .lanes = (uint16_t)lesser(ours->lanes, theirs->lanes),
    .chunk_bytes = lesser(ours->chunk_bytes, theirs->chunk_bytes),
    .eager_bytes = lesser(ours->eager_bytes, theirs->eager_bytes),
    .wants_checksums = ours->wants_checksums || theirs->wants_checksums,
    .remote_keys = (uint8_t)lesser(ours->remote_keys, theirs->remote_keys),
    .ciphers = (uint8_t)(ciphers & -ciphers),
  };
  if (agreed.remote_keys == 0 && ours->codec == theirs->codec) {
    agreed.codec = ours->codec;
  }
  return agreed;
}

struct link_config negotiate_link(enum link_role role, const struct terms *agreed,
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
