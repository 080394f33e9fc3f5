/* SPDX-License-Identifier: Apache-2.0 */
/* replay_report: lines and JSON file of a replay.
 * Owns: the results until replay_report_close.  Threads: process 0's main thread.
 * Blocks: while it writes.  Fails: ends the process with a message. */
#ifndef COLL_REPLAY_REPLAY_REPORT_H
#define COLL_REPLAY_REPLAY_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "tuner_plugin/tools/coll/job.h"
#include "tuner_plugin/tools/coll/measure.h"
#include "tuner_plugin/tools/coll/replay/replay_load.h"

/* Of one workload. */
struct replay_result {
  const struct replay_part *part;
  double *step_us;   /* options->replay_steps of them, each of the slowest process */
  double mean_us;    /* of these */
  double compute_us; /* mean of a step without its collectives, likewise */
  double cpu_s;      /* user and system time of a process in a step, mean of the processes */
  /* When the steps that count began and ended, for who measures the host meanwhile: clock_now_ns,
   * so of this host only. */
  uint64_t began_ns, ended_ns;
  struct measure_result check;
};

struct replay_report;

struct replay_report *replay_report_open(FILE *table, const struct job *job);
void replay_report_add(struct replay_report *report, const struct replay_result *result);
void replay_report_close(struct replay_report *report);

/* The value below which `percent` of the sorted ones are, interpolated as numpy does. */
double replay_percentile(const double *sorted, int count, double percent);

#endif
