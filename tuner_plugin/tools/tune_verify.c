/* SPDX-License-Identifier: Apache-2.0 */
/* stratus verify: the profile against NCCL's own choice over the same transport, in
 * alternating runs; rows that are not faster are removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tools/commands.h"
#include "tuner_plugin/tools/calibrate/ab_test.h"
#include "tuner_plugin/tools/calibrate/launch.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  const char *profile;
  const char *out;
  int64_t rounds;
} options = { .rounds = 5 };

static const struct cli_option option_rows[] = {
  { "profile", 'p', CLI_STRING, &options.profile, "FILE", "profile to verify", 0, 0 },
  { "output", 'o', CLI_STRING, &options.out, "FILE",
    "write the profile to it, without the rows that failed", 0, 0 },
  { "rounds", 0, CLI_INT, &options.rounds, "N", "runs of each side, alternating", 1, 99 },
  LAUNCH_OPTION_ROWS,
  { 0 },
};

enum { SIDE_DEFAULT, SIDE_PROFILE, SIDES };

struct verification {
  struct launch launch;
  struct profile profile;
  char path[PROFILE_PATH_MAX]; /* absolute, as ranks run elsewhere */
  uint32_t ranks, nodes;       /* as the tuner logged */
  bool has_rows;               /* it logged that the profile has rows for this shape */
  struct ab_test test;
};

/* "TUNER/stratus: 16 ranks on 2 nodes: 5 rows of profile x match", or "no row of profile x matches"
 */
static void take_line(void *to, const char *line) {
  struct verification *verification = to;
  const char *found = line ? strstr(line, "TUNER/stratus: ") : NULL;
  uint32_t ranks, nodes, rows = 0;
  char word[8];
  if (found &&
      sscanf(found, "TUNER/stratus: %" SCNu32 " ranks on %" SCNu32 " nodes: %7s row", &ranks,
             &nodes, word) == 3 &&
      strstr(found, " of profile ")) {
    verification->ranks = ranks;
    verification->nodes = nodes;
    verification->has_rows = sscanf(word, "%" SCNu32, &rows) == 1 && rows > 0;
  }
}

static int run_side(struct verification *verification, enum profile_collective collective,
                    int64_t round, int side) {
  char profile[PROFILE_PATH_MAX + 32], what[64];
  const char *const ours[] = { "STRATUS_CALIBRATE=",
                               side == SIDE_DEFAULT ? "STRATUS_TUNER=0" : "STRATUS_TUNER=1",
                               profile, NULL };
  snprintf(profile, sizeof profile, "STRATUS_PROFILE=%s", verification->path);
  snprintf(what, sizeof what, "%s, round %" PRId64 " of %" PRId64,
           side == SIDE_DEFAULT ? "NCCL's own choice" : "the profile", round + 1, options.rounds);
  struct launch_job job = { .what = what,
                            .collective = collective,
                            .sizes = verification->launch.sizes,
                            .size_count = verification->launch.size_count,
                            .iterations = (uint64_t)launch_options.iterations,
                            .is_checked = true,
                            .ours = ours,
                            .take = take_line,
                            .to = verification };
  struct bench_json bench = { 0 };
  int status = launch_run(&verification->launch, &job, &bench);
  for (size_t i = 0; status == CLI_OK && i < bench.count; i++) {
    if (ab_test_add(&verification->test, &bench.rows[i], side == SIDE_PROFILE) < 0) {
      status = cli_fail("out of memory");
    }
  }
  bench_json_free(&bench);
  return status;
}

/* Every collective once on each side. */
static int run_round(struct verification *verification, int64_t round) {
  const struct launch *launch = &verification->launch;
  int status = CLI_OK;
  for (size_t i = 0; status == CLI_OK && i < launch->collective_count; i++) {
    for (int turn = 0; status == CLI_OK && turn < SIDES; turn++) {
      status = run_side(verification, launch->collectives[i], round, (int)(round + turn) % SIDES);
    }
  }
  return status;
}

static int run_all(struct verification *verification) {
  int status = CLI_OK;
  int64_t done = 0;
  while (status == CLI_OK && done < options.rounds) {
    status = run_round(verification, done);
    done += status == CLI_OK;
  }
  if (status != CLI_OK && done >= 2) {
    cli_say("judging by the %" PRId64 " rounds before the launch that failed", done);
    status = CLI_OK;
  }
  return status;
}

/* ---- results ---- */

/* Where no row matches both sides are the same, and differences are noise. */
static const char *verdict_of(const struct ab_test_point *point) {
  if (!point->is_chosen) {
    return "control";
  }
  return point->is_slower ? "slower" : point->is_faster ? "faster" : "equal";
}

static void print_points(const struct ab_test *test, size_t dropped) {
  struct ab_test_sums sums = ab_test_sum(test);
  printf("%-14s %8s %12s %12s %7s %7s  %s\n", "collective", "size", "NCCL us", "profile us",
         "ratio", "within", "verdict");
  for (size_t i = 0; i < test->count; i++) {
    const struct ab_test_point *point = &test->points[i];
    char size[QUANTITY_TEXT_MAX];
    printf("%-14s %8s %12.2f %12.2f %7.3f %6.1f%%  %s\n",
           profile_collective_name(point->collective), quantity_format_size(point->bytes, size),
           point->default_us, point->profile_us, point->ratio, 100 * point->tolerance,
           verdict_of(point));
  }
  printf("%zu sizes: %zu faster, %zu slower; geometric mean of the ratios %.3f; %zu rows dropped\n"
         "control, NCCL's own choice in both: up to %.1f%% apart\n",
         test->count, sums.faster, sums.slower, sums.geomean, dropped, 100 * sums.control);
}

static int conclude(struct verification *verification) {
  struct ab_test *test = &verification->test;
  if (verification->nodes == 0) {
    return cli_fail("no rank logged that its tuner uses profile %s: NCCL_DEBUG=INFO shows why",
                    verification->profile.meta.id);
  }
  uint32_t ppn = verification->ranks / verification->nodes;
  ab_test_judge(test, &verification->profile, verification->nodes, ppn);
  if (!verification->has_rows) {
    /* The tuner ignores rows that gain too little for the guard. */
    cli_say("no row of profile %s matches here: both sides are NCCL's own choice",
            verification->profile.meta.id);
    for (size_t i = 0; i < test->count; i++) {
      test->points[i].is_chosen = false;
    }
  }
  size_t dropped = ab_test_drop_rows(test, &verification->profile, verification->nodes, ppn);
  print_points(test, dropped);
  int status = options.out ? tune_write(&verification->profile, options.out) : CLI_OK;
  return test->wrong == 0 ? status : cli_fail("%" PRIu64 " values were wrong", test->wrong);
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  static struct verification verification;
  char path[PROFILE_PATH_MAX];
  if (!options.profile) {
    return cli_fail_usage("verify needs --profile FILE");
  }
  int status = tune_load(options.profile, &verification.profile, path);
  if (status != CLI_OK) {
    return status;
  }
  if (!realpath(path, verification.path)) {
    status = cli_fail("%s cannot be found", path);
  }
  status = status ? status : launch_open(&verification.launch, argument_count, arguments);
  status = status ? status : run_all(&verification);
  status = status ? status : conclude(&verification);
  launch_close(&verification.launch);
  ab_test_free(&verification.test);
  profile_free(&verification.profile);
  return status;
}

const struct cli_command command_verify = {
  .name = "verify",
  .summary = "run a profile against NCCL's own choice in alternation, and drop rows that fail",
  .arguments = "[-- COMMAND...]",
  .max_arguments = -1,
  .example = "stratus verify -p a.profile -o b.profile -- mpirun -np 16 all_reduce_perf",
  .options = option_rows,
  .run = run,
};
