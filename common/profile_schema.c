/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind profile texts of schema 1. */
#include "common/profile_schema.h"

#include "common/profile.h"

const char *const profile_collective_names[] = {
  "broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL,
};
const char *const profile_algorithm_names[] = {
  "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat", NULL,
};
const char *const profile_protocol_names[] = { "ll", "ll128", "simple", NULL };

static const char *const cloud_names[] = {
  "aws", "gcp", "azure", "alibaba", "oci", "tencent", NULL,
};

const char *const profile_section_names[PROFILE_SECTION_COUNT] = { "meta", "match", "net" };

#define TEXT_KEY(section, part, name, type)                                                        \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_##type, offsetof(struct profile, part.name),     \
        sizeof(((struct profile *)NULL)->part.name), 0, 0, NULL                                    \
  }
#define WORD_KEY(section, part, name, words)                                                       \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_WORD, offsetof(struct profile, part.name),       \
        sizeof(((struct profile *)NULL)->part.name), 0, 0, words                                   \
  }
#define NUMBER_KEY(section, part, name, type, low, high)                                           \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_##type, offsetof(struct profile, part.name), 0,  \
        low, high, NULL                                                                            \
  }

/* Ranges of [net] are those of the STRATUS_ variables of the same names. */
const struct profile_key profile_keys[] = {
  TEXT_KEY(META, meta, id, ID),
  TEXT_KEY(META, meta, created, DATE),
  TEXT_KEY(META, meta, source, TEXT),
  NUMBER_KEY(META, meta, nccl_min, VERSION_MIN, 0, 0),
  NUMBER_KEY(META, meta, nccl_max, VERSION_MAX, 0, 0),
  WORD_KEY(MATCH, fit, cloud, cloud_names),
  TEXT_KEY(MATCH, fit, instance_type, TEXT),
  TEXT_KEY(MATCH, fit, topology, TOPOLOGY),
  NUMBER_KEY(NET, net, flows, NUMBER, 1, 64),
  NUMBER_KEY(NET, net, chunk_bytes, SIZE, 4 << 10, 4 << 20),
  NUMBER_KEY(NET, net, speed_mbps, NUMBER, 1, 10000000),
  NUMBER_KEY(NET, net, latency_us, NUMBER, 1, 1000),
};
const size_t profile_key_count = sizeof profile_keys / sizeof profile_keys[0];
