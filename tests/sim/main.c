/* SPDX-License-Identifier: Apache-2.0 */
/* sim: runs the protocol core through seeded worlds of faults.
 *
 *   sim [--runs N] [--seed N] [--verbose]   N runs with the seeds that follow --seed;
 *                                           even ones use policy_fixed, odd ones policy_adaptive
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
  static const struct {
    const char *name;
    const uint64_t *count;
  } counts[] = {
    { "# lanes lost", &totals.losses },
    { ", of these stalled", &totals.stalls_cut },
    { ", slow", &totals.slow_reconnects },
    { "; chunks requeued", &totals.requeued },
    { "; pings", &totals.pings },
    { ", of these behind losses", &totals.tail_pings },
    { "; chunks repeated", &totals.repeats },
    { ", twice there", &totals.duplicates },
    { "; frames placed", &totals.placed },
    { ", payloads moved", &totals.moved },
    { ", lanes measured", &totals.measured },
    { ", times that the clock was behind", &totals.clock_steps },
    { "; links silent", &totals.silent },
    { ", aborted", &totals.aborted },
    { ", timed out", &totals.timed_out },
    { ", without data", &totals.stuck },
    { "\n# chunks coded", &totals.coded },
    { ", decoded", &totals.decoded },
    { ", left as they are", &totals.raw },
    { "; lanes without memory to decode", &totals.raw_lanes },
  };
  printf("ok %u - %u runs\n1..%u\n", failed + 1, passed, failed + 1);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    printf("%s %llu", counts[i].name, (unsigned long long)*counts[i].count);
  }
  printf("\n%u passed, %u failed, 0 skipped\n", passed, failed);
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
    } else {
      fprintf(stderr, "sim: unknown option '%s'; --runs N, --seed N, --verbose\n", argv[i]);
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
