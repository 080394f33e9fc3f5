/* SPDX-License-Identifier: Apache-2.0 */
/* campaign: launches of one benchmark over collectives and sizes: what calibrate and verify-ab
 * share. Owns: all it needs, until campaign_close.  Threads: the main thread.  Blocks: while a
 * launch runs.  Fails: with a message and CLI_FAILED or CLI_USAGE. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_CAMPAIGN_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_CAMPAIGN_H

#include "common/host_list.h"
#include "tuner_plugin/calibrate/plan.h"
#include "tuner_plugin/tools/calibrate/launch.h"

struct campaign_options {
  const char *collectives; /* "allreduce,allgather" */
  uint64_t min_bytes;
  uint64_t max_bytes;
  int64_t factor;
  int64_t iterations;
  uint64_t min_time_ns;
  uint64_t timeout_ns;
  const char *hosts; /* NULL: none */
  int64_t ppn;       /* 0: as the hosts say */
  bool is_split_cpus;
  const char *program; /* stratus-coll */
  const char *work;    /* directory for the benchmark's files */
};
extern struct campaign_options campaign_options;

/* Rows of the table of options that both commands have. */
#define CAMPAIGN_OPTION_ROWS                                                                         \
  { "coll", 'c', CLI_STRING, &campaign_options.collectives, "LIST", "collectives", 0, 0 },           \
      { "minbytes", 'b', CLI_SIZE, &campaign_options.min_bytes, "SIZE", "smallest size", 0, 0 },     \
      { "maxbytes", 'e', CLI_SIZE, &campaign_options.max_bytes, "SIZE", "largest size", 0, 0 },      \
      { "stepfactor", 'f', CLI_INT, &campaign_options.factor, "N", "from one size to the next", 2,   \
        1024 },                                                                                      \
      { "iters", 'n',                                                                                \
        CLI_INT, &campaign_options.iterations,                                                       \
        "N",     "calls of each size, both out of place and in place",                               \
        2,       1000000 },                                                                          \
      { "min-time",                                                                                  \
        't',                                                                                         \
        CLI_DURATION,                                                                                \
        &campaign_options.min_time_ns,                                                               \
        "TIME",                                                                                      \
        "more calls until they take this long (stratus-coll)",                                       \
        0,                                                                                           \
        0 },                                                                                         \
      { "timeout",                                                                                   \
        'T',                                                                                         \
        CLI_DURATION,                                                                                \
        &campaign_options.timeout_ns,                                                                \
        "TIME",                                                                                      \
        "end a launch with an error after this long",                                                \
        0,                                                                                           \
        0 },                                                                                         \
      { "hosts",                                                                                     \
        'H',                                                                                         \
        CLI_STRING,                                                                                  \
        &campaign_options.hosts,                                                                     \
        "LIST|FILE",                                                                                 \
        "start the ranks on these hosts, as stratus-coll --hosts does; instead of a command",        \
        0,                                                                                           \
        0 },                                                                                         \
      { "ppn",   'r',                                                                                \
        CLI_INT, &campaign_options.ppn,                                                              \
        "COUNT", "with --hosts: ranks on each; else as the list says, or 1",                         \
        1,       HOST_SLOTS_MAX },                                                                   \
      { "split-cpus",                                                                                \
        0,                                                                                           \
        CLI_FLAG,                                                                                    \
        &campaign_options.is_split_cpus,                                                             \
        NULL,                                                                                        \
        "with --hosts: divide this machine's CPUs between its hosts",                                \
        0,                                                                                           \
        0 },                                                                                         \
      { "program",  0,                                                                               \
        CLI_STRING, &campaign_options.program,                                                       \
        "PATH",     "stratus-coll to run; a bare name is looked for beside this tool, then in PATH", \
        0,          0 },                                                                             \
  {                                                                                                  \
    "work", 'w', CLI_STRING, &campaign_options.work, "DIR",                                          \
        "directory for the benchmark's files; rank 0's host must see it too", 0, 0                   \
  }

enum { CAMPAIGN_VARIABLES_MAX = 60, CAMPAIGN_ID_MAX = 9 };

struct campaign {
  struct launch launch;
  enum profile_collective collectives[PROFILE_COLLECTIVE_COUNT];
  size_t collective_count;
  char id[CAMPAIGN_ID_MAX]; /* hash of everything that affects the measurement, except sizes */
  char hosts_id[CAMPAIGN_ID_MAX]; /* of the list of hosts; empty: not known */
  char *hosts;                    /* the list, in one form; NULL: none */
  char json_path[PROFILE_PATH_MAX];
  char program_path[PROFILE_PATH_MAX]; /* of the benchmark beside this tool */
  const char *variables[CAMPAIGN_VARIABLES_MAX + 1];
};

/* `arguments`: the command behind `--`, if any. `settings`: what else shapes the measurement. */
int campaign_open(struct campaign **campaign, int argument_count, char **arguments,
                  const char *settings);
void campaign_close(struct campaign *campaign);

/* The sizes that were asked for, as the benchmark will round them where that is known already. */
size_t campaign_sizes(const struct campaign *campaign, enum profile_collective collective,
                      uint64_t sizes[PLAN_ENTRIES_MAX]);

/* `ours` and what the user has set for NCCL and stratus, as the ranks get it. Valid until the next
 * call. */
const char *const *campaign_variables(struct campaign *campaign, const char *const *ours);

/* How often a launch is tried: a host may be busy for a moment. Ranks started by another launcher
 * cannot agree to try again. */
int campaign_tries(const struct campaign *campaign);

/* Runs a job and reports progress; `alone`, if not NULL, has the times of calls. */
int campaign_run(struct campaign *campaign, const struct launch_job *job, const char *what,
                 const struct bench_json *alone, launch_line_fn *take, void *to);
int campaign_read(const struct campaign *campaign, const struct launch_job *job,
                  struct bench_json *bench);

/* A line on stderr, from rank 0 only. */
__attribute__((format(printf, 1, 2))) void campaign_say(const char *format, ...);

#endif
