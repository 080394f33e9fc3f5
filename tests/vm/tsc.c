/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how many thousand times per second this machine's time stamp counter ticks. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define LOOKS 1000

struct moment {
  uint64_t ns, ticks;
};

/* Of many looks the one that took least: nothing came between its two halves. */
static struct moment look(void) {
  struct moment best = { 0 };
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < LOOKS; i++) {
    struct timespec now;
    uint64_t before = __rdtsc();
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    uint64_t after = __rdtsc();
    if (after - before < least) {
      least = after - before;
      best.ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
      best.ticks = before + least / 2;
    }
  }
  return best;
}

int main(void) {
  struct moment first = look();
  nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
  struct moment last = look();
  printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 / (double)(last.ns - first.ns));
}
