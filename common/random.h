/* SPDX-License-Identifier: Apache-2.0 */
/* random: numbers that nobody can guess, from the kernel; and pseudo-random ones that need not be
 * secret (jitter, order of trials, simulated faults): splitmix64 (Steele, Lea, Flood 2014), for
 * which any seed is good.
 * Owns: nothing.  Threads: any; one per state.  Blocks: where the kernel has no entropy yet, early
 * in the boot.  Fails: where stated. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* At most 256 bytes, which come whole (getrandom(2)). 0 or negative errno. */
static inline int random_secret(void *bytes, size_t count) {
  return getrandom(bytes, count, 0) == (ssize_t)count ? 0 : -errno;
}

static inline uint64_t random_next(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

#endif
