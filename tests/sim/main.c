/* SPDX-License-Identifier: Apache-2.0 */
/* sim: runs the protocol core through seeded worlds of faults.
 *
 * Prints TAP: a line for each failed run, with its seed and the command that repeats it, and one
 * for all others; last the sum of runs. Without options also what happened in them is counted and
 * compared. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/version.h"
#include "tests/sim/world.h"

enum { COUNTED_RUNS = 1000 };

static int64_t runs = COUNTED_RUNS, first_seed = 1;
static bool is_verbose;
static uint64_t current_seed;
static unsigned passed, failed;
static struct world_totals totals;

static void print_failed(uint64_t seed) {
  failed++;
  printf("not ok %u - seed %llu\n# repeat: build/tests/sim --seed %llu --runs 1 --verbose\n",
         failed, (unsigned long long)seed, (unsigned long long)seed);
}

/* What the first 1,000 runs come to, the same on every machine. No single run can be blamed for
 * most of it: a fault that never happens tests nothing, and what repairs it, acknowledges or dials
 * may cost no more, nor be later, than it did. A change that is meant to change nothing changes
 * none of these; any other shows here what it costs, and sets them anew: build/tests/sim prints
 * them. */
static const struct {
  const char *name;
  const uint64_t *count;
  uint64_t expected;
} counts[] = {
  { "lanes lost", &totals.losses, 5293 },
  { "of these stalled", &totals.stalls_cut, 1225 },
  { "dials", &totals.dials, 62589 },
  { "messages", &totals.messages, 45486 },
  { "us until they came", &totals.waited_us, 364714125 },
  { "of these late", &totals.late, 2588 },
  { "DATA", &totals.frames[WIRE_DATA], 82266 },
  { "REQUEST", &totals.frames[WIRE_REQUEST], 3902 },
  { "WINDOW", &totals.frames[WIRE_WINDOW], 41897 },
  { "CLOSED", &totals.frames[WIRE_CLOSED], 10750 },
  { "PONG", &totals.frames[WIRE_PONG], 52881 },
  { "PING", &totals.pings, 47722 },
  { "of these behind losses", &totals.tail_pings, 3635 },
  { "lanes asked", &totals.measured, 383778 },
  { "chunks requeued", &totals.requeued, 2706 },
  { "repeated", &totals.repeats, 2768 },
  { "twice there", &totals.duplicates, 154 },
  { "placed", &totals.placed, 2999 },
  { "payloads moved", &totals.moved, 55 },
  { "chunks coded", &totals.coded, 1090 },
  { "decoded", &totals.decoded, 1017 },
  { "left as they are", &totals.raw, 1635 },
  { "lanes without memory to decode", &totals.raw_lanes, 24 },
  { "times that the clock was behind", &totals.clock_steps, 4649376 },
  { "links silent", &totals.silent, 25 },
  { "timed out", &totals.timed_out, 95 },
  { "without data", &totals.stuck, 2 },
};

static void print_counts(bool has_expected) {
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    unsigned long long count = *counts[i].count, expected = counts[i].expected;
    printf("# %-32s%12llu\n", counts[i].name, count);
    if (has_expected && count != expected) {
      printf("not ok %u - %s: %llu instead of %llu; if that is meant, tests/sim/main.c has to say "
             "so\n",
             ++failed, counts[i].name, count, expected);
    }
  }
}

static void print_total(void) {
  print_counts(first_seed == 1 && passed == COUNTED_RUNS && failed == 0);
  printf("ok %u - %u runs\n1..%u\n", failed + 1, passed, failed + 1);
  printf("%u passed, %u failed, 0 skipped\n", passed, failed);
  fflush(stdout);
}

/* An assertion of the core: its state cannot be trusted any more, so this ends the program. */
static void aborted(int signal_number) {
  print_failed(current_seed);
  print_total();
  _exit(1);
}

static bool run_one(uint64_t seed) {
  jmp_buf escape;
  current_seed = seed;
  struct world *world = world_create(seed, is_verbose, &totals);
  world->escape = &escape;
  bool is_good = setjmp(escape) == 0;
  if (is_good) {
    world_run(world);
  } else {
    print_failed(seed);
  }
  world_add_links(world);
  world_destroy(world);
  return is_good;
}

static int run(int count, char **arguments, bool is_json) {
  signal(SIGABRT, aborted);
  printf("# seeds %lld to %lld\n", (long long)first_seed, (long long)(first_seed + runs - 1));
  fflush(stdout);
  for (int64_t i = 0; i < runs; i++) {
    passed += run_one((uint64_t)(first_seed + i));
  }
  print_total();
  return failed == 0 ? CLI_OK : CLI_FAILED;
}

int main(int argc, char **argv) {
  static const struct cli_option options[] = {
    { "runs", 0, CLI_INT, &runs, "N", "runs, with the seeds that follow --seed", 1, INT64_MAX },
    { "seed", 0, CLI_INT, &first_seed, "N", "of the first", 0, INT64_MAX },
    { "verbose", 0, CLI_FLAG, &is_verbose, NULL, "what happens in each", 0, 0 },
    { 0 },
  };
  static const struct cli_command command = {
    .name = "sim",
    .summary = "The protocol core in worlds of faults. Without options counts are compared, too.",
    .example = "build/tests/sim --seed 7 --runs 1 --verbose",
    .options = options,
    .run = run,
  };
  return cli_program(&command, STRATUS_VERSION, argc, argv);
}
