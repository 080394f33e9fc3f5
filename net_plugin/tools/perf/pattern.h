/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: message contents in which every word differs by stream, message and position.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_PATTERN_H
#define NET_PLUGIN_TOOLS_PERF_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
