/* SPDX-License-Identifier: Apache-2.0 */
/* launch: runs one of nccl-tests on all ranks, under the user's own launcher, and takes its
 * results: what calibrate and verify share.
 * Owns: the benchmark's process while it runs, and its file of results.  Threads: the main thread.
 * Blocks: launch_run, until the benchmark has ended.  Fails: with a message and CLI_FAILED or
 * CLI_USAGE; on SIGINT, SIGTERM and after the time limit the benchmark is ended before.
 *
 *   behind --                    what is run                               variables reach ranks by
 *   mpirun -N 8 PROGRAM          mpirun -x NAME ... -N 8 PROGRAM ...       -x (Open MPI, PRRTE)
 *   srun, torchrun, others       as given                                  the environment
 *
 * PROGRAM is one of nccl-tests' (all_reduce_perf; its name is changed for other collectives). */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_H

#include "tuner_plugin/decide/limits.h"
#include "tuner_plugin/tools/calibrate/bench_json.h"

struct launch_options {
  const char *collectives; /* "allreduce,allgather" */
  uint64_t min_bytes;
  uint64_t max_bytes;
  int64_t factor;
  int64_t iterations;
  uint64_t timeout_ns;
  const char *work; /* directory for the benchmark's files */
};
extern struct launch_options launch_options;

/* Rows of the table of options that both commands have. */
#define LAUNCH_ROW(name, letter, type, field, argument, low, high, help)                           \
  { name, letter, type, &launch_options.field, argument, help, low, high }
#define LAUNCH_OPTION_ROWS                                                                         \
  LAUNCH_ROW("coll", 'c', CLI_STRING, collectives, "LIST", 0, 0, "collectives"),                   \
      LAUNCH_ROW("minbytes", 'b', CLI_SIZE, min_bytes, "SIZE", 0, 0, "smallest size"),             \
      LAUNCH_ROW("maxbytes", 'e', CLI_SIZE, max_bytes, "SIZE", 0, 0, "largest size"),              \
      LAUNCH_ROW("stepfactor", 'f', CLI_INT, factor, "N", 2, 1024, "from one size to the next"),   \
      LAUNCH_ROW("iters", 'n', CLI_INT, iterations, "N", 2, 1000000,                               \
                 "calls of each size, both out of place and in place"),                            \
      LAUNCH_ROW("timeout", 'T', CLI_DURATION, timeout_ns, "TIME", 0, 0,                           \
                 "end a launch with an error after this long"),                                    \
      LAUNCH_ROW("work", 'w', CLI_STRING, work, "DIR", 0, 0,                                       \
                 "directory for the benchmark's files; rank 0's host must see it too")

struct launch {
  char *const *command; /* what was behind -- */
  int command_count;
  bool is_open_mpi;
  enum profile_collective collectives[PROFILE_COLLECTIVE_COUNT];
  size_t collective_count;
  uint64_t sizes[CALIBRATE_SIZES_MAX]; /* that were asked for; the benchmark may round them */
  size_t size_count;
  char json_path[PROFILE_PATH_MAX];
};

/* `arguments`: the command behind `--`. To be closed even after a failure. */
int launch_open(struct launch *launch, int argument_count, char **arguments);
void launch_close(struct launch *launch);

/* Words one behind the other (argz(3)), which the caller frees. */
struct launch_words {
  char *words;
  size_t bytes;
};
/* "NAME=VALUE" of all that ranks are to have: `ours`, what the lines of the tuner need, and what
 * the user has set for NCCL and stratus. */
struct launch_words launch_list_variables(const char *const *ours);

/* Takes a line that any rank printed; NULL: a launch begins, what came before does not count. */
typedef void launch_line_fn(void *to, const char *line);

/* What one launch is to do. */
struct launch_job {
  const char *what; /* for progress */
  enum profile_collective collective;
  const uint64_t *sizes; /* ascending */
  size_t size_count;
  uint64_t iterations; /* of each size and place */
  bool is_checked;     /* one more call of each place, whose values are checked */
  const char *const *ours;
  launch_line_fn *take; /* NULL: nobody wants the lines */
  void *to;
};

/* The command line. */
struct launch_words launch_build(const struct launch *launch, const struct launch_job *job);

/* Runs it, once more if it fails, as a host may be busy for a moment.
 * `bench`, which is to be freed, gets the results. */
int launch_run(struct launch *launch, const struct launch_job *job, struct bench_json *bench);

#endif
