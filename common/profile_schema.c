/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of profile texts of schema 1. */
#include "common/profile_schema.h"

const char *const profile_section_names[PROFILE_SECTION_COUNT] = { "meta", "match", "net" };

#define TEXT_KEY(section, part, name, type)                                                        \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_##type, offsetof(struct profile, part.name),     \
        sizeof(((struct profile *)NULL)->part.name), 0, 0                                          \
  }
#define NUMBER_KEY(section, part, name, type, low, high)                                           \
  {                                                                                                \
    PROFILE_SECTION_##section, #name, PROFILE_KEY_##type, offsetof(struct profile, part.name), 0,  \
        low, high                                                                                  \
  }

/* Ranges of [net] are those of the STRATUS_ variables of the same names. */
const struct profile_key profile_keys[] = {
  TEXT_KEY(META, meta, id, ID),
  TEXT_KEY(META, meta, created, ID),
  TEXT_KEY(META, meta, source, TEXT),
  NUMBER_KEY(META, meta, nccl_min, VERSION_MIN, 0, 0),
  NUMBER_KEY(META, meta, nccl_max, VERSION_MAX, 0, 0),
  TEXT_KEY(MATCH, fit, cloud, CLOUD),
  TEXT_KEY(MATCH, fit, instance_type, TEXT),
  TEXT_KEY(MATCH, fit, topology, TOPOLOGY),
  NUMBER_KEY(NET, net, flows, NUMBER, 1, 64),
  NUMBER_KEY(NET, net, chunk_bytes, SIZE, 4 << 10, 4 << 20),
  NUMBER_KEY(NET, net, speed_mbps, NUMBER, 1, 10000000),
};
const size_t profile_key_count = sizeof profile_keys / sizeof profile_keys[0];
