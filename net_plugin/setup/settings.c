/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. */
#include "net_plugin/setup/settings.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/param.h"
#include "common/profile.h"
#include "common/random.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/limits.h"

static struct profile_net from_profile;
static struct conn_params identity;
static pthread_once_t identity_once = PTHREAD_ONCE_INIT;

void settings_use_profile(const struct profile *profile) {
  from_profile = profile ? profile->net : (struct profile_net){ 0 };
}

/* The lengths of compressed chunks depend on what they hold: where the user wants nothing seen,
 * nothing is compressed unless that is wanted, too. */
static enum policy_compress compress_mode(bool wants_encryption) {
  static const enum policy_compress modes[] = { [PARAM_COMPRESS_OFF] = POLICY_COMPRESS_OFF,
                                                [PARAM_COMPRESS_AUTO] = POLICY_COMPRESS_AUTO,
                                                [PARAM_COMPRESS_ON] = POLICY_COMPRESS_ON };
  bool is_left_to_us = !param_is_set(PARAM_COMPRESS);
  return wants_encryption && is_left_to_us ? POLICY_COMPRESS_OFF
                                           : modes[param_enum(PARAM_COMPRESS)];
}

void settings_get(unsigned nics, struct settings *settings) {
  unsigned lanes = (unsigned)param_int(PARAM_FLOWS);
  if (!lanes) {
    lanes = (from_profile.flows ? from_profile.flows : SETTINGS_LANES_PER_NIC) * nics;
  }
  lanes = lanes < nics ? nics : lanes > WIRE_MAX_LANES ? WIRE_MAX_LANES : lanes;
  bool learns_lanes = !param_is_set(PARAM_FLOWS);
  uint32_t chunk_bytes = (uint32_t)param_size(PARAM_CHUNK_BYTES), usual = chunk_bytes;
  if (!param_is_set(PARAM_CHUNK_BYTES)) {
    usual = from_profile.chunk_bytes ? from_profile.chunk_bytes : chunk_bytes;
    bool is_most = usual >= WIRE_MAX_CHUNK_BYTES / SETTINGS_QUICK_CHUNKS;
    chunk_bytes = is_most ? WIRE_MAX_CHUNK_BYTES : usual * SETTINGS_QUICK_CHUNKS;
  }
  settings->wants_encryption = param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON;
  settings->policy = (struct policy_config){
    .lanes = learns_lanes ? WIRE_MAX_LANES : lanes,
    .first_lanes = lanes,
    .chunk_bytes = chunk_bytes,
    .usual_chunk_bytes = usual,
    .learns_lanes = learns_lanes,
    .reconnects_slow_lanes = param_bool(PARAM_REDIAL_SLOW),
    .compress = compress_mode(settings->wants_encryption),
  };
  uint32_t eager_bytes = (uint32_t)param_size(PARAM_EAGER_BYTES);
  struct conn_params *params = &settings->params;
  *params = *settings_identity();
  params->lanes = (uint16_t)settings->policy.lanes;
  params->chunk_bytes = chunk_bytes;
  params->eager_bytes = eager_bytes < usual ? eager_bytes : usual;
  params->wants_checksums = param_bool(PARAM_CHECKSUM);
  params->codec = CODEC_VERSION;
  params->ciphers = settings->wants_encryption ? (uint8_t)lane_crypto_ciphers() : 0;
  settings->link_timeout_ns = param_duration_ns(PARAM_LINK_TIMEOUT);
  settings->stopped_timeout_ns = param_duration_ns(PARAM_STOPPED_TIMEOUT);
  settings->connect_timeout_ns = param_duration_ns(PARAM_CONNECT_TIMEOUT);
}

void settings_of_group(unsigned nics, unsigned group_peers, struct settings *settings) {
  if (group_peers == 0) {
    return;
  }
  struct policy_config *policy = &settings->policy;
  unsigned lanes = (2 * policy->first_lanes + group_peers - 1) / group_peers;
  unsigned least = SETTINGS_GROUP_LANES_PER_NIC * nics;
  lanes = lanes > least ? lanes : least;
  if (policy->learns_lanes && lanes < policy->first_lanes) {
    policy->first_lanes = policy->lanes = lanes;
    settings->params.lanes = (uint16_t)lanes;
    policy->learns_lanes = false; /* members wait for each other: windows tell too little */
  }
}

struct conn_params settings_of_listener(const struct settings *settings, unsigned remote_keys) {
  struct conn_params params = settings->params;
  params.lanes = WIRE_MAX_LANES;
  params.chunk_bytes = WIRE_MAX_CHUNK_BYTES;
  params.remote_keys = (uint8_t)remote_keys;
  params.codec = settings->policy.compress != POLICY_COMPRESS_OFF ? params.codec : 0;
  return params;
}

struct link_config settings_of_link(enum link_role role, const struct conn_params *agreed,
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
    policy->first_lanes = first < agreed->lanes ? first : agreed->lanes;
  }
  policy->lanes = agreed->lanes;
  policy->chunk_bytes = agreed->chunk_bytes;
  policy->compress = agreed->codec ? policy->compress : POLICY_COMPRESS_OFF;
  return config;
}

void settings_use_decision(const struct decision *decision) {
  identity.decision = *decision;
}

static void make_identity(void) {
  if (gethostname(identity.host, sizeof identity.host - 1) != 0) {
    strcpy(identity.host, "unknown host");
  }
  if (random_secret(&identity.process, sizeof identity.process) != 0) {
    identity.process = (uint32_t)getpid();
  }
}

const struct conn_params *settings_identity(void) {
  pthread_once(&identity_once, make_identity);
  return &identity;
}
