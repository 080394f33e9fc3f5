/* SPDX-License-Identifier: Apache-2.0 */
/* replay: the order of a measurement. Processes meet before the first step and never between steps,
 * where only collectives hold them together, as in training. */
#include "tuner_plugin/tools/coll/replay/replay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "tuner_plugin/tools/coll/check.h"
#include "tuner_plugin/tools/coll/libs.h"
#include "tuner_plugin/tools/coll/message.h"
#include "tuner_plugin/tools/coll/replay/replay_report.h"
#include "tuner_plugin/tools/coll/replay/step.h"
#include "tuner_plugin/tools/coll/watchdog.h"
#include "tuner_plugin/tools/limits.h"

size_t replay_bytes(const struct replay *replay) {
  size_t bytes = 0;
  for (size_t i = 0; i < replay->part_count; i++)
    bytes = replay->parts[i].sum.buffer_bytes > bytes ? replay->parts[i].sum.buffer_bytes : bytes;
  return bytes;
}

/* ---- the same plan everywhere ---- */

enum { CHUNK = 64 }; /* items that are compared at a time */

static void name_item(const struct job *job, const struct replay_part *part, size_t i,
                      char text[PLAN_TEXT_MAX]) {
  if (i < part->count)
    plan_text(&part->workload, &part->items[i], job->ranks, text);
  else
    snprintf(text, PLAN_TEXT_MAX, "the end");
}

/* Processes whose plans differ would wait for each other forever. Process 0 shows its own, to the
 * end, and the others compare. */
static void compare_plans(const struct job *job, const struct replay_part *part) {
  static char theirs[CHUNK][PLAN_TEXT_MAX];
  uint64_t count = part->count + 1;
  rendezvous_broadcast(job->rendezvous, &count, sizeof count);
  for (size_t first = 0; first < count; first += CHUNK) {
    size_t some = count - first < CHUNK ? count - first : CHUNK;
    for (size_t i = 0; i < some && job->process == 0; i++)
      name_item(job, part, first + i, theirs[i]);
    rendezvous_broadcast(job->rendezvous, theirs, some * sizeof theirs[0]);
    for (size_t i = 0; i < some; i++) {
      char mine[PLAN_TEXT_MAX];
      name_item(job, part, first + i, mine);
      if (strcmp(theirs[i], mine) != 0)
        message_fail("%s: item %zu of the step is \"%s\" here and \"%s\" at rank 0: do all hosts "
                     "have the same file?",
                     part->workload.name, first + i + 1, mine, theirs[i]);
    }
  }
}

/* ---- time ---- */

/* This process's times of so many steps, in microseconds. */
static void time_steps(struct step *step, const struct replay_part *part, bool has_collectives,
                       int count, double *times_us) {
  uint64_t previous_ns = clock_now_ns();
  for (int i = 0; i < count; i++) {
    watchdog_set_place("%s: step %d%s", part->workload.name, i + 1,
                       has_collectives ? "" : " without collectives");
    step_run(step, has_collectives);
    uint64_t now_ns = clock_now_ns();
    if (times_us)
      times_us[i] = (double)(now_ns - previous_ns) / 1e3;
    previous_ns = now_ns;
  }
}

static double mean(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += values[i];
  return sum / count;
}

static double measure_compute(const struct job *job, struct step *step,
                              const struct replay_part *part) {
  int count = job->options->replay_steps < REPLAY_COMPUTE_STEPS_MAX ? job->options->replay_steps
                                                                    : REPLAY_COMPUTE_STEPS_MAX;
  double mine[REPLAY_COMPUTE_STEPS_MAX];
  rendezvous_barrier(job->rendezvous);
  time_steps(step, part, false, 1, NULL);
  time_steps(step, part, false, count, mine);
  double *slowest = measure_slowest(job, mine, count);
  double compute_us = mean(slowest, count);
  free(slowest);
  return compute_us;
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double mean_of_processes(const struct job *job, double mine) {
  double *all = message_allocate((size_t)job->processes, sizeof *all);
  rendezvous_gather(job->rendezvous, &mine, all, sizeof mine);
  double result = mean(all, job->processes);
  free(all);
  return result;
}

/* Sums of sums would grow to infinity in the course of the steps; zeroes stay, and so do averages
 * of equal contents (step.c). */
static void fill_buffers(const struct job *job) {
  if (job->contents) {
    check_fill_with_contents(job);
    return;
  }
  CUDA(cudaMemset(job->gpus[0].send, 0, job_buffer_bytes(job)));
  CUDA(cudaMemset(job->gpus[0].recv, 0, job_buffer_bytes(job)));
  CUDA(cudaDeviceSynchronize());
}

static void run_part(struct job *job, const struct replay_part *part,
                     struct replay_result *result) {
  const struct options *o = job->options;
  double *mine = message_allocate((size_t)o->replay_steps, sizeof *mine);
  *result = (struct replay_result){ .part = part };
  watchdog_set_place("%s", part->workload.name);
  compare_plans(job, part);
  fill_buffers(job);
  struct step *step = step_open(job, part);
  result->compute_us = measure_compute(job, step, part);
  rendezvous_barrier(job->rendezvous);
  time_steps(step, part, true, o->replay_skip, NULL);
  double before_s = cpu_seconds();
  result->began_ns = clock_now_ns();
  time_steps(step, part, true, o->replay_steps, mine);
  result->ended_ns = clock_now_ns();
  result->cpu_s = mean_of_processes(job, (cpu_seconds() - before_s) / o->replay_steps);
  result->step_us = measure_slowest(job, mine, o->replay_steps);
  result->mean_us = mean(result->step_us, o->replay_steps);
  step_check(step, &result->check);
  step_close(step);
  free(mine);
}

void replay_run(struct job *job, const struct replay *replay, FILE *table, uint64_t *wrong,
                uint64_t *out_of_bounds) {
  struct replay_report *report = table ? replay_report_open(table, job) : NULL;
  for (size_t i = 0; i < replay->part_count; i++) {
    struct replay_result result;
    run_part(job, &replay->parts[i], &result);
    if (report)
      replay_report_add(report, &result);
    *wrong += result.check.wrong;
    *out_of_bounds += result.check.out_of_bounds;
    free(result.step_us);
  }
  if (report)
    replay_report_close(report);
}
