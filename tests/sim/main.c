/* SPDX-License-Identifier: Apache-2.0 */
/* sim: runs the protocol core through seeded worlds of faults.
 *
 *   sim [--runs N] [--seed N] [--verbose]   N runs with the seeds that follow --seed;
 *                                           even ones use policy_fixed, odd ones policy_adaptive
 *   sim --measure                           what the core itself costs
 *
 * Prints TAP: a line for each failed run, with its seed and the command that repeats it, and one
 * for all others; last the sum of runs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/world.h"

static uint64_t current_seed;
static unsigned passed, failed;
static struct world_totals totals;

static void print_failed(uint64_t seed) {
  failed++;
  printf("not ok %u - seed %llu\n# repeat: build/tests/sim --seed %llu --runs 1 --verbose\n",
         failed, (unsigned long long)seed, (unsigned long long)seed);
}

static void print_total(void) {
  printf("ok %u - %u runs\n1..%u\n", failed + 1, passed, failed + 1);
  printf("# lanes lost %llu, of these stalled %llu, slow %llu; chunks requeued %llu; pings "
         "%llu, of these behind losses %llu; chunks repeated %llu, twice there %llu; "
         "frames placed %llu, payloads moved %llu, lanes measured %llu, clock behind %llu times; "
         "links silent %llu, aborted %llu, timed out %llu, without data %llu\n",
         (unsigned long long)totals.losses, (unsigned long long)totals.stalls_cut,
         (unsigned long long)totals.slow_reconnects, (unsigned long long)totals.requeued,
         (unsigned long long)totals.pings, (unsigned long long)totals.tail_pings,
         (unsigned long long)totals.repeats, (unsigned long long)totals.duplicates,
         (unsigned long long)totals.placed, (unsigned long long)totals.moved,
         (unsigned long long)totals.measured, (unsigned long long)totals.clock_steps,
         (unsigned long long)totals.silent, (unsigned long long)totals.aborted,
         (unsigned long long)totals.timed_out, (unsigned long long)totals.stuck);
  printf("# chunks coded %llu, decoded %llu, left as they are %llu; lanes without memory to decode "
         "%llu\n",
         (unsigned long long)totals.coded, (unsigned long long)totals.decoded,
         (unsigned long long)totals.raw, (unsigned long long)totals.raw_lanes);
  printf("%u passed, %u failed, 0 skipped\n", passed, failed);
  fflush(stdout);
}

/* An assertion of the core: its state cannot be trusted any more, so this ends the program. */
static void aborted(int signal_number) {
  (void)signal_number;
  print_failed(current_seed);
  print_total();
  _exit(1);
}

static bool run_one(uint64_t seed, bool is_verbose) {
  jmp_buf escape;
  current_seed = seed;
  struct world *world = world_create(seed, is_verbose);
  world->escape = &escape;
  bool is_good = setjmp(escape) == 0;
  if (is_good) {
    world_run(world);
  } else {
    print_failed(seed);
  }
  world_add(world, &totals);
  world_destroy(world);
  return is_good;
}

static uint64_t parse_number(const char *option, const char *text) {
  char *end;
  uint64_t value = text != NULL ? strtoull(text, &end, 10) : 0;
  if (text == NULL || *text == '\0' || *end != '\0') {
    fprintf(stderr, "sim: %s takes a number, not '%s'\n", option, text != NULL ? text : "");
    exit(2);
  }
  return value;
}

int main(int argc, char **argv) {
  uint64_t seed = 1, runs = 1000;
  bool is_verbose = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--seed") == 0) {
      seed = parse_number(argv[i], argv[i + 1]);
      i++;
    } else if (strcmp(argv[i], "--runs") == 0) {
      runs = parse_number(argv[i], argv[i + 1]);
      i++;
    } else if (strcmp(argv[i], "--verbose") == 0) {
      is_verbose = true;
    } else if (strcmp(argv[i], "--measure") == 0) {
      measure_run();
      return 0;
    } else {
      fprintf(stderr, "sim: unknown option '%s'; --runs N, --seed N, --verbose, --measure\n",
              argv[i]);
      return 2;
    }
  }
  signal(SIGABRT, aborted);
  printf("# seeds %llu to %llu, even ones with the fixed policy, odd ones with the adaptive\n",
         (unsigned long long)seed, (unsigned long long)(seed + runs - 1));
  fflush(stdout);
  for (uint64_t i = 0; i < runs; i++) {
    passed += run_one(seed + i, is_verbose);
  }
  print_total();
  return failed == 0 ? 0 : 1;
}
