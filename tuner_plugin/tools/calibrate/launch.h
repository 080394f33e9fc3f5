/* SPDX-License-Identifier: Apache-2.0 */
/* launch: starts a benchmark on all ranks, with any launcher, and reads their output.
 * Owns: the process while it runs.  Threads: the main thread.
 * Blocks: launch_run, until the benchmark has ended.  Fails: with a message and CLI_FAILED; on
 * SIGINT, SIGTERM and after the time limit the benchmark is ended before.
 *
 *   how ranks come to be         command                                 variables reach them by
 *   --hosts a,b --ppn 8          stratus-coll --hosts a,b --ppn 8 ...     --env NAME=VALUE
 *   -- mpirun -N 8 PROGRAM       mpirun -x NAME ... -N 8 PROGRAM ...      -x (Open MPI, PRRTE)
 *   -- srun, torchrun, others    as given                                 the environment
 *   inside of a rank already     stratus-coll ...                         the environment
 *     (mpirun, srun, torchrun stratus-tune calibrate; common/launcher.h)
 *
 * PROGRAM is stratus-coll or one of nccl-tests' (all_reduce_perf; its name is changed for other
 * collectives). */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_H

#include "common/host_command.h"
#include "tuner_plugin/tools/calibrate/bench_json.h"

enum launch_kind { LAUNCH_HOSTS, LAUNCH_MPIRUN, LAUNCH_COMMAND, LAUNCH_INSIDE };

struct launch {
  enum launch_kind kind;
  enum bench_json_kind bench;
  const char *hosts;    /* LAUNCH_HOSTS */
  int64_t ppn;          /* the same */
  bool is_split_cpus;   /* the same */
  const char *program;  /* stratus-coll's path, where it is not part of the command */
  char *const *command; /* LAUNCH_COMMAND, LAUNCH_MPIRUN */
  int command_count;
  int rank; /* LAUNCH_INSIDE: of this process; else 0 */
  int size; /* LAUNCH_INSIDE: of the job; else 0 */
};

/* What one launch is to do. */
struct launch_job {
  enum profile_collective collective;
  const uint64_t *sizes; /* ascending */
  size_t size_count;
  uint64_t iterations;  /* of each size and place */
  uint64_t min_time_ns; /* more iterations until they take this long; stratus-coll only */
  uint64_t checks;      /* runs whose values are checked */
  const char *json_path;
  const char *const *variables; /* "NAME=VALUE", NULL at the end */
  uint64_t timeout_ns;          /* 0: none */
};

/* Reads the arguments after `--` and the environment. `hosts` may be NULL. False: it is unknown how
 * to start ranks, and `error` says why. */
enum { LAUNCH_ERROR_MAX = 256 };
bool launch_choose(struct launch *launch, const char *hosts, char *const *command,
                   int command_count, char error[LAUNCH_ERROR_MAX]);

/* The command line of a job, to be freed by host_command_free. */
void launch_build(const struct launch *launch, const struct launch_job *job,
                  struct host_command *words);

typedef void launch_line_fn(void *to, const char *line);

/* Runs it; `take` gets each line that any rank prints. CLI_OK, or CLI_FAILED after a message. */
int launch_run(const struct launch *launch, const struct launch_job *job, launch_line_fn *take,
               void *to);

/* Calls of each place that are not timed: before the timed ones, and after. */
uint64_t launch_calls_before(const struct launch *launch, const struct launch_job *job);
uint64_t launch_calls_after(const struct launch *launch, const struct launch_job *job);

#endif
