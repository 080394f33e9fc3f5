/* SPDX-License-Identifier: Apache-2.0 */
/* random: pseudo-random numbers that need not be secret: jitter, order of trials, simulated faults.
 * splitmix64 (Steele, Lea, Flood 2014): any seed is good.
 * Owns: nothing.  Threads: one per state.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

#endif
