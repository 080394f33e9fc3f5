/* SPDX-License-Identifier: Apache-2.0 */
/* launch: starts a benchmark on all ranks, with any launcher, and reads their output.
 * Owns: the process while it runs.  Threads: the main thread.
 * Blocks: launch_run, until the benchmark has ended.  Fails: with a message and CLI_FAILED; on
 * SIGINT, SIGTERM and after the time limit the benchmark is ended before.
 *
 *   how ranks come to be         command                                 variables reach them by
 *   -- mpirun -N 8 PROGRAM       mpirun -x NAME ... -N 8 PROGRAM ...      -x (Open MPI, PRRTE)
 *   -- srun, others              as given                                 the environment
 *   inside of a rank already     PROGRAM ...                              the environment
 *     (mpirun, srun stratus calibrate -- PROGRAM; common/launcher.h)
 *
 * PROGRAM is one of nccl-tests' (all_reduce_perf; its name is changed for other collectives). */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

enum launch_kind { LAUNCH_MPIRUN, LAUNCH_COMMAND, LAUNCH_INSIDE };

struct launch {
  enum launch_kind kind;
  char *const *command;
  int command_count;
  int rank; /* LAUNCH_INSIDE: of this process; else 0 */
  int size; /* LAUNCH_INSIDE: of the job; else 0 */
};

/* What one launch is to do. */
struct launch_job {
  enum profile_collective collective;
  const uint64_t *sizes; /* ascending */
  size_t size_count;
  uint64_t iterations; /* of each size and place */
  uint64_t checks;     /* runs whose values are checked */
  const char *json_path;
  const char *const *variables; /* "NAME=VALUE", NULL at the end */
  uint64_t timeout_ns;          /* 0: none */
};

/* Reads the arguments after `--` and the environment. False: it is unknown how to start ranks, and
 * `error` says why. */
enum { LAUNCH_ERROR_MAX = 256 };
bool launch_choose(struct launch *launch, char *const *command, int command_count,
                   char error[LAUNCH_ERROR_MAX]);

/* A command line. has_failed: out of memory, or too many words. */
enum { LAUNCH_WORDS_MAX = 640 };
struct launch_words {
  char *words[LAUNCH_WORDS_MAX + 1]; /* NULL at the end */
  int count;
  bool has_failed;
};

/* That of a job, to be freed by launch_words_free. */
void launch_build(const struct launch *launch, const struct launch_job *job,
                  struct launch_words *words);
void launch_words_free(struct launch_words *words);

typedef void launch_line_fn(void *to, const char *line);

/* Runs it; `take` gets each line that any rank prints. CLI_OK, or CLI_FAILED after a message. */
int launch_run(const struct launch *launch, const struct launch_job *job, launch_line_fn *take,
               void *to);

/* Calls of each place that are not timed: one to synchronise before the timed ones, and after. */
enum { LAUNCH_CALLS_BEFORE = 1 };
uint64_t launch_calls_after(const struct launch_job *job);

#endif
