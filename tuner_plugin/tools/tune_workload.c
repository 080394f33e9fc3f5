/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune workload: passes its options to tools/trace, which is Python. */
#include <inttypes.h>
#include <stdio.h>

#include "tuner_plugin/tools/tune.h"
#include "tuner_plugin/tools/tune_python.h"

enum { RANKS_MAX = 1000000, BATCH_MAX = 1000000 };

static struct {
  const char *output, *name, *step, *skip;
  int64_t rank, batch, world;
  uint64_t step_ns;
  bool has_host_time;
} options = { .rank = -1, .batch = 1 };

const struct cli_option tune_workload_options[] = {
  { .name = "output",
    .letter = 'o',
    .type = CLI_STRING,
    .value = &options.output,
    .argument = "FILE",
    .help = "write the workload to it" },
  { .name = "name",
    .type = CLI_STRING,
    .value = &options.name,
    .argument = "NAME",
    .help = "name of the workload, instead of the trace's file name" },
  { .name = "step",
    .letter = 's',
    .type = CLI_STRING,
    .value = &options.step,
    .argument = "N",
    .help = "ProfilerStep#N, or repetition N; else one from the middle" },
  { .name = "rank",
    .letter = 'r',
    .type = CLI_INT,
    .value = &options.rank,
    .argument = "N",
    .help = "which of several traces to take; -1: the lowest rank, or all where they differ",
    .low = -1,
    .high = RANKS_MAX },
  { .name = "batch",
    .letter = 'b',
    .type = CLI_INT,
    .value = &options.batch,
    .argument = "N",
    .help = "samples of one rank in a step, for samples per second",
    .low = 1,
    .high = BATCH_MAX },
  { .name = "world",
    .letter = 'w',
    .type = CLI_INT,
    .value = &options.world,
    .argument = "N",
    .help = "ranks of the job, where the trace does not say; 0: it does",
    .low = 0,
    .high = RANKS_MAX },
  { .name = "step-time",
    .type = CLI_DURATION,
    .value = &options.step_ns,
    .argument = "TIME",
    .help = "of a trace without times: computation of a step, spread evenly; 0: none" },
  { .name = "host-time",
    .type = CLI_FLAG,
    .value = &options.has_host_time,
    .help = "time in which the GPU waits for the host is computation, too" },
  { .name = "skip",
    .type = CLI_STRING,
    .value = &options.skip,
    .argument = "NAMES",
    .help = "leave these calls out, as in send,recv" },
  { 0 },
};

/* NULL for `none`, which is what was not given. */
static const char *number(char text[24], int64_t value, int64_t none) {
  snprintf(text, 24, "%" PRId64, value);
  return value == none ? NULL : text;
}

int tune_workload(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  char rank[24], batch[24], world[24], time[32] = "";
  snprintf(time, sizeof time, "%.3f", (double)options.step_ns / 1e3);
  struct tune_python python = { .directory = "trace",
                                .subcommand = "workload",
                                .needs = "python3" };
  tune_python_option(&python, "--output", options.output);
  tune_python_option(&python, "--name", options.name);
  tune_python_option(&python, "--step", options.step);
  tune_python_option(&python, "--rank", number(rank, options.rank, -1));
  tune_python_option(&python, "--batch", number(batch, options.batch, -1));
  tune_python_option(&python, "--world", number(world, options.world, 0));
  tune_python_option(&python, "--step-us", options.step_ns > 0 ? time : NULL);
  tune_python_option(&python, "--skip", options.skip);
  if (options.has_host_time) {
    tune_python_flag(&python, "--host-time");
  }
  return tune_python_run(&python, argument_count, arguments);
}
