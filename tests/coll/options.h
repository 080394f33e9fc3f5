/* SPDX-License-Identifier: Apache-2.0 */
/* options: the command line.
 * Owns: the strings stay in argv.  Threads: one.
 * Blocks: never.  Fails: with a message on stderr that names the option and what it accepts. */
#ifndef COLL_OPTIONS_H
#define COLL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/coll/element.h"
#include "tests/coll/operation.h"

enum {
  OPTIONS_SIZES_MAX = 256,
  OPTIONS_ITERATIONS_MAX = 1000000,
};

struct options {
  bool operations[OPERATIONS];
  bool types[ELEMENT_TYPES];
  bool redops[PATTERN_NONE];

  uint64_t min_bytes, max_bytes;     /* -b -e */
  double step_factor;                /* -f */
  uint64_t sizes[OPTIONS_SIZES_MAX]; /* in the order they are run */
  int sizes_count;

  int iterations, warmup, checks;
  int is_registered;    /* -R 1 */
  int is_per_iteration; /* -I 1: synchronize after each one */
  uint64_t min_time_ns; /* more iterations until this, 0 = as many as -n says */
  uint64_t timeout_ns;  /* of the whole run, 0 = none */
  uint64_t grace_ns;    /* how long NCCL may take to notice that a rank has ended */

  const char *replay; /* workloads, separated by commas; NULL: the table */
  int replay_steps, replay_skip;
  double compute_scale, bytes_scale;

  /* Jobs to be broken (stress/stress.h): of the first three at most one is not 0. */
  uint64_t soak_ns;
  int abort_rounds, unmade_rounds;
  const char *command;  /* NULL: none */
  uint64_t patience_ns; /* of --unmade */
  int seed;
  const char *log_path; /* of --soak; NULL: none */

  int gpus; /* per process */
  int root; /* -1: another one at each size */

  const char *data; /* a file of what is sent; NULL: patterns, zeros */
  const char *json_path;
  const char *hosts; /* NULL: no launch */
  bool is_split_cpus;
  int ppn; /* processes on each host */
};

/* True: there is something to run. False: help was printed, or use is wrong, and *status is the
 * program's. */
bool options_parse(struct options *options, int argc, char **argv, int *status);

#endif
