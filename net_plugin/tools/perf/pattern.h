/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: message contents in which every word differs by stream, message and position; or any
 * contents, which say themselves which message they are and what their checksum is.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_PATTERN_H
#define NET_PLUGIN_TOOLS_PERF_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/hash.h"

static inline uint64_t pattern_word(uint64_t seed, size_t place) {
  return (seed + place) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The seed of message `number` of a stream. */
static inline uint64_t pattern_seed(unsigned stream, uint64_t number) {
  return ((uint64_t)stream << 52) + (number << 28);
}

static inline void pattern_fill(uint8_t *to, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t word = pattern_word(seed, at / 8);
    memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

static inline bool pattern_matches(const uint8_t *from, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t word = pattern_word(seed, at / 8);
    if (memcmp(from + at, &word, bytes - at < 8 ? bytes - at : 8) != 0) {
      return false;
    }
  }
  return true;
}

/* ---- any contents ---- */

/* Their first words: that of the pattern, the CRC32C of what follows. Shorter messages are all
 * pattern. */
enum { PATTERN_SEAL_BYTES = 16 };

static inline void pattern_seal(uint8_t *message, size_t bytes, uint64_t seed) {
  if (bytes < PATTERN_SEAL_BYTES) {
    pattern_fill(message, bytes, seed);
    return;
  }
  uint64_t crc = hash_crc32c(0, message + PATTERN_SEAL_BYTES, bytes - PATTERN_SEAL_BYTES);
  pattern_fill(message, 8, seed);
  memcpy(message + 8, &crc, sizeof crc);
}

static inline bool pattern_seal_matches(const uint8_t *message, size_t bytes, uint64_t seed) {
  if (bytes < PATTERN_SEAL_BYTES) {
    return pattern_matches(message, bytes, seed);
  }
  uint64_t crc = hash_crc32c(0, message + PATTERN_SEAL_BYTES, bytes - PATTERN_SEAL_BYTES);
  return pattern_matches(message, 8, seed) && memcmp(message + 8, &crc, sizeof crc) == 0;
}

#endif
