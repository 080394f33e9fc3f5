/* SPDX-License-Identifier: Apache-2.0 */
/* profile_schema: the words and keys of the profile text, in one table for reader and writer.
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

/* Names in the order of the enums in common/profile.h, NULL at the end. */
extern const char *const profile_collective_names[];
extern const char *const profile_algorithm_names[];
extern const char *const profile_protocol_names[];

enum profile_section {
  PROFILE_SECTION_META,
  PROFILE_SECTION_MATCH,
  PROFILE_SECTION_NET,
  PROFILE_SECTION_COUNT
};
extern const char *const profile_section_names[PROFILE_SECTION_COUNT];

enum profile_key_type {
  PROFILE_KEY_ID,          /* char[]: letters, digits and . _ - */
  PROFILE_KEY_DATE,        /* char[]: YYYY-MM-DD */
  PROFILE_KEY_TEXT,        /* char[]: anything on one line but a double quote */
  PROFILE_KEY_TOPOLOGY,    /* char[]: fingerprints, separated by commas */
  PROFILE_KEY_WORD,        /* char[]: one of `words` */
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
  uint32_t capacity; /* of a char[], with the NUL */
  uint32_t low;      /* of a number */
  uint32_t high;
  const char *const *words; /* NULL at the end */
};

extern const struct profile_key profile_keys[];
extern const size_t profile_key_count;

/* The value of the key as the canonical text has it, without quotes; false if it is not given. */
bool profile_key_value(const struct profile *profile, const struct profile_key *key,
                       char text[PROFILE_TEXT_MAX]);

#endif
