/* SPDX-License-Identifier: Apache-2.0 */
/* stratus verify: the profile against NCCL's own choice over the same transport, in
 * alternating runs; rows that are not faster are removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/tools/commands.h"
#include "tuner_plugin/tools/calibrate/ab_test.h"
#include "tuner_plugin/tools/calibrate/campaign.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  const char *profile;
  const char *out;
  int64_t rounds;
  uint64_t for_ns; /* 0: all rounds */
} options = { .rounds = 5 };

static const struct cli_option option_rows[] = {
  { "profile", 'p', CLI_STRING, &options.profile, "FILE", "profile to verify", 0, 0 },
  { "output", 'o', CLI_STRING, &options.out, "FILE",
    "write the profile to it, without the rows that failed", 0, 0 },
  { "rounds", 0, CLI_INT, &options.rounds, "N", "runs of each side, alternating", 1, 99 },
  { "for", 0, CLI_DURATION, &options.for_ns, "TIME",
    "after the second round, start none that would end later than this", 0, 0 },
  CAMPAIGN_OPTION_ROWS,
  { 0 },
};

enum { SIDE_DEFAULT, SIDE_PROFILE, SIDES };

struct verification {
  struct campaign *campaign;
  struct profile profile;
  char path[PROFILE_PATH_MAX]; /* absolute, as ranks run elsewhere */
  uint32_t ranks, nodes;       /* as the tuner logged */
  bool has_rows;               /* it logged that the profile has rows for this shape */
  int64_t rounds;              /* that were run */
  struct ab_test test;
};

/* "TUNER/stratus: 16 ranks on 2 nodes: 5 rows of profile x match", or "no row of profile x matches"
 */
static void take_line(void *to, const char *line) {
  struct verification *verification = to;
  const char *found = strstr(line, "TUNER/stratus: ");
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

/* The time of a call: the median of all calls, where the benchmark gives them. */
static int take_times(struct verification *verification, const struct bench_json *bench, int side) {
  for (size_t i = 0; i < bench->count; i++) {
    if (ab_test_add(&verification->test, &bench->rows[i], side == SIDE_PROFILE) < 0) {
      return cli_fail("out of memory");
    }
  }
  return CLI_OK;
}

static int run_side(struct verification *verification, enum profile_collective collective,
                    int64_t round, int side) {
  struct campaign *campaign = verification->campaign;
  char profile[PROFILE_PATH_MAX + 32];
  snprintf(profile, sizeof profile, "STRATUS_PROFILE=%s", verification->path);
  const char *const ours[] = { "STRATUS_CALIBRATE=",
                               side == SIDE_DEFAULT ? "STRATUS_TUNER=0" : "STRATUS_TUNER=1",
                               profile, NULL };
  uint64_t sizes[PLAN_ENTRIES_MAX];
  size_t size_count = campaign_sizes(campaign, collective, sizes);
  struct launch_job job = campaign_job(campaign, collective, sizes, size_count, ours);
  job.checks = 1;
  char what[64];
  snprintf(what, sizeof what, "%s, round %" PRId64 " of %" PRId64,
           side == SIDE_DEFAULT ? "NCCL's own choice" : "the profile", round + 1, options.rounds);
  struct bench_json bench = { 0 };
  int status = campaign_run(campaign, &job, what, NULL, take_line, verification, &bench);
  if (status == CLI_OK) {
    status = take_times(verification, &bench, side);
  }
  bench_json_free(&bench);
  return status;
}

/* Every collective once on each side. */
static int run_round(struct verification *verification, int64_t round) {
  struct campaign *campaign = verification->campaign;
  int status = CLI_OK;
  for (size_t i = 0; status == CLI_OK && i < campaign->collective_count; i++) {
    for (int turn = 0; status == CLI_OK && turn < SIDES; turn++) {
      status = CLI_FAILED;
      for (int left = campaign_tries(campaign); left > 0 && status != CLI_OK; left--) {
        status =
            run_side(verification, campaign->collectives[i], round, (int)(round + turn) % SIDES);
      }
    }
  }
  return status;
}

/* Would one more round end too late? If each rank runs this command, their clocks differ. */
static bool is_time_up(const struct verification *verification, int64_t rounds, uint64_t spent_ns) {
  uint64_t limit_ns = options.for_ns;
  bool is_limited = limit_ns > 0 && verification->campaign->launch.kind != LAUNCH_INSIDE;
  return is_limited && rounds >= 2 && spent_ns + spent_ns / (uint64_t)rounds > limit_ns;
}

static int run_all(struct verification *verification) {
  uint64_t start_ns = clock_now_ns();
  int64_t *done = &verification->rounds;
  int status = CLI_OK;
  while (status == CLI_OK && *done < options.rounds &&
         !is_time_up(verification, *done, clock_now_ns() - start_ns)) {
    status = run_round(verification, *done);
    *done += status == CLI_OK;
  }
  if (status != CLI_OK && *done >= 2) {
    campaign_say("judging by the %" PRId64 " rounds before the launch that failed", *done);
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

static void print_points(const struct verification *verification, size_t dropped) {
  const struct ab_test *test = &verification->test;
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

static json_t *json_points(const struct ab_test *test) {
  json_t *points = json_array();
  for (size_t i = 0; i < test->count; i++) {
    const struct ab_test_point *point = &test->points[i];
    json_array_append_new(
        points, json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:b, s:s}", "collective",
                          profile_collective_name(point->collective), "bytes",
                          (json_int_t)point->bytes, "default_us", point->default_us, "profile_us",
                          point->profile_us, "ratio", point->ratio, "tolerance", point->tolerance,
                          "chosen", point->is_chosen, "verdict", verdict_of(point)));
  }
  return points;
}

static int print_json(const struct verification *verification, size_t dropped) {
  const struct ab_test *test = &verification->test;
  struct ab_test_sums sums = ab_test_sum(test);
  return tune_print_json(
      json_pack("{s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:f, s:f, s:I, s:I}", "profile",
                verification->profile.meta.id, "nodes", (json_int_t)verification->nodes, "ranks",
                (json_int_t)verification->ranks, "rounds", (json_int_t)verification->rounds,
                "points", json_points(test), "faster", (json_int_t)sums.faster, "slower",
                (json_int_t)sums.slower, "geomean_ratio", sums.geomean, "control", sums.control,
                "wrong", (json_int_t)test->wrong, "dropped_rows", (json_int_t)dropped));
}

static int conclude(struct verification *verification, bool is_json) {
  if (verification->nodes == 0) {
    return cli_fail("no rank logged that its tuner uses profile %s: NCCL_DEBUG=INFO shows why",
                    verification->profile.meta.id);
  }
  uint32_t ppn = verification->ranks / verification->nodes;
  ab_test_judge(&verification->test, &verification->profile, verification->nodes, ppn);
  if (!verification->has_rows) {
    /* The tuner ignores rows that gain too little for the guard. */
    campaign_say("no row of profile %s matches here: both sides are NCCL's own choice",
                 verification->profile.meta.id);
    for (size_t i = 0; i < verification->test.count; i++) {
      verification->test.points[i].is_chosen = false;
    }
  }
  size_t dropped =
      ab_test_drop_rows(&verification->test, &verification->profile, verification->nodes, ppn);
  int status = CLI_OK;
  if (is_json) {
    status = print_json(verification, dropped);
  } else {
    print_points(verification, dropped);
    status = fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
  }
  if (status == CLI_OK && options.out) {
    status = tune_write(&verification->profile, options.out);
  }
  return verification->test.wrong == 0
             ? status
             : cli_fail("%" PRIu64 " values were wrong", verification->test.wrong);
}

static int run(int argument_count, char **arguments, bool is_json) {
  if (!options.profile) {
    return cli_fail_usage("verify needs --profile FILE");
  }
  struct verification *verification = calloc(1, sizeof *verification);
  char path[PROFILE_PATH_MAX];
  if (!verification) {
    return cli_fail("out of memory");
  }
  int status = tune_load(options.profile, &verification->profile, path);
  bool has_profile = status == CLI_OK;
  if (has_profile && !realpath(path, verification->path)) {
    status = cli_fail("%s cannot be found", path);
  }
  if (status == CLI_OK) {
    status = campaign_open(&verification->campaign, argument_count, arguments, "verify");
  }
  if (status == CLI_OK) {
    status = run_all(verification);
  }
  if (status == CLI_OK && verification->campaign->launch.rank == 0) {
    status = conclude(verification, is_json);
  }
  campaign_close(verification->campaign);
  ab_test_free(&verification->test);
  if (has_profile) {
    profile_free(&verification->profile);
  }
  free(verification);
  return status;
}

const struct cli_command command_verify = {
  .name = "verify",
  .summary = "run a profile against NCCL's own choice in alternation, and drop rows that fail",
  .arguments = "[-- COMMAND...]",
  .max_arguments = -1,
  .example = "stratus verify -p a.profile -o b.profile -- mpirun -np 16 all_reduce_perf",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
