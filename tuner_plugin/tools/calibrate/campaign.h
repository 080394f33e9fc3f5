/* SPDX-License-Identifier: Apache-2.0 */
/* campaign: launches of one benchmark over collectives and sizes: what calibrate and verify
 * share. Owns: all it needs, until campaign_close.  Threads: the main thread.  Blocks: while a
 * launch runs.  Fails: with a message and CLI_FAILED or CLI_USAGE. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_CAMPAIGN_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_CAMPAIGN_H

#include "tuner_plugin/calibrate/plan.h"
#include "tuner_plugin/tools/calibrate/bench_json.h"
#include "tuner_plugin/tools/calibrate/launch.h"

struct campaign_options {
  const char *collectives; /* "allreduce,allgather" */
  uint64_t min_bytes;
  uint64_t max_bytes;
  int64_t factor;
  int64_t iterations;
  uint64_t timeout_ns;
  const char *work; /* directory for the benchmark's files */
};
extern struct campaign_options campaign_options;

/* Rows of the table of options that both commands have. */
#define CAMPAIGN_ROW(name, letter, type, field, argument, low, high, help)                         \
  { name, letter, type, &campaign_options.field, argument, help, low, high }
#define CAMPAIGN_OPTION_ROWS                                                                       \
  CAMPAIGN_ROW("coll", 'c', CLI_STRING, collectives, "LIST", 0, 0, "collectives"),                 \
      CAMPAIGN_ROW("minbytes", 'b', CLI_SIZE, min_bytes, "SIZE", 0, 0, "smallest size"),           \
      CAMPAIGN_ROW("maxbytes", 'e', CLI_SIZE, max_bytes, "SIZE", 0, 0, "largest size"),            \
      CAMPAIGN_ROW("stepfactor", 'f', CLI_INT, factor, "N", 2, 1024, "from one size to the next"), \
      CAMPAIGN_ROW("iters", 'n', CLI_INT, iterations, "N", 2, 1000000,                             \
                   "calls of each size, both out of place and in place"),                          \
      CAMPAIGN_ROW("timeout", 'T', CLI_DURATION, timeout_ns, "TIME", 0, 0,                         \
                   "end a launch with an error after this long"),                                  \
      CAMPAIGN_ROW("work", 'w', CLI_STRING, work, "DIR", 0, 0,                                     \
                   "directory for the benchmark's files; rank 0's host must see it too")

enum { CAMPAIGN_VARIABLES_MAX = 60, CAMPAIGN_ID_MAX = 9 };

struct campaign {
  struct launch launch;
  enum profile_collective collectives[PROFILE_COLLECTIVE_COUNT];
  size_t collective_count;
  char id[CAMPAIGN_ID_MAX]; /* hash of everything that affects the measurement, except sizes */
  char json_path[PROFILE_PATH_MAX];
  const char *variables[CAMPAIGN_VARIABLES_MAX + 1];
};

/* `arguments`: the command behind `--`, if any. `settings`: what else shapes the measurement. */
int campaign_open(struct campaign **campaign, int argument_count, char **arguments,
                  const char *settings);
void campaign_close(struct campaign *campaign);

/* The sizes that were asked for, as the benchmark will round them where that is known already. */
size_t campaign_sizes(const struct campaign *campaign, enum profile_collective collective,
                      uint64_t sizes[PLAN_ENTRIES_MAX]);

/* A job of these sizes, as the options say. Its variables are `ours` and what the user has set for
 * NCCL and stratus; they are valid until the next call. */
struct launch_job campaign_job(struct campaign *campaign, enum profile_collective collective,
                               const uint64_t *sizes, size_t size_count, const char *const *ours);

/* What the calls of a size will take, in seconds, out of place and in place, by a run of NCCL's own
 * choice; NULL: 0. */
double campaign_expect_s(const struct bench_json *alone, enum profile_collective collective,
                         uint64_t bytes);

/* How often a launch is tried: a host may be busy for a moment. Ranks started by another launcher
 * cannot agree to try again. */
int campaign_tries(const struct campaign *campaign);

/* Runs a job and reports progress; `alone`, if not NULL, has the times of calls. On rank 0 `bench`,
 * which is to be freed, gets the results. */
int campaign_run(struct campaign *campaign, const struct launch_job *job, const char *what,
                 const struct bench_json *alone, launch_line_fn *take, void *to,
                 struct bench_json *bench);

/* A line on stderr, from rank 0 only. */
__attribute__((format(printf, 1, 2))) void campaign_say(const char *format, ...);

#endif
