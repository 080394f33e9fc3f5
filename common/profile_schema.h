/* SPDX-License-Identifier: Apache-2.0 */
/* profile_schema: the keys of the profile text, in one table for reader and writer.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot.
 *
 * A new key is one row in profile_schema.c and one field in struct profile. */
#ifndef COMMON_PROFILE_SCHEMA_H
#define COMMON_PROFILE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

enum profile_section {
  PROFILE_SECTION_META,
  PROFILE_SECTION_MATCH,
  PROFILE_SECTION_NET,
  PROFILE_SECTION_COUNT
};
extern const char *const profile_section_names[PROFILE_SECTION_COUNT];

#define PROFILE_CLOUD_WORDS "aws|gcp|azure|alibaba|oci|tencent"

enum profile_key_type {
  PROFILE_KEY_ID,          /* char[]: letters, digits and . _ - */
  PROFILE_KEY_TEXT,        /* char[]: anything on one line but a double quote */
  PROFILE_KEY_TOPOLOGY,    /* char[]: a fingerprint */
  PROFILE_KEY_CLOUD,       /* char[]: one of PROFILE_CLOUD_WORDS */
  PROFILE_KEY_VERSION_MIN, /* int: 2.21 is 22100 */
  PROFILE_KEY_VERSION_MAX, /* int: 2.21 is 22199 */
  PROFILE_KEY_NUMBER,      /* uint32_t */
  PROFILE_KEY_SIZE,        /* uint32_t bytes */
};

struct profile_key {
  enum profile_section section;
  const char *name;
  enum profile_key_type type;
  size_t offset;     /* in struct profile */
  uint32_t capacity; /* of a char[], with the NUL; else 0 */
  uint32_t low;      /* of a number */
  uint32_t high;
};

extern const struct profile_key profile_keys[];
extern const size_t profile_key_count;

/* The value of the key as the canonical text has it, without quotes; false if it is not given. */
bool profile_key_value(const struct profile *profile, const struct profile_key *key,
                       char text[PROFILE_TEXT_MAX]);

#endif
