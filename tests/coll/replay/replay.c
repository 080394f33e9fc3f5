/* SPDX-License-Identifier: Apache-2.0 */
/* replay: reads each file; measures; says what came of it. Processes meet before the first step and
 * never between steps, where only collectives hold them together, as in training. */
#include "tests/coll/replay/replay.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "tests/coll/measure.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"
#include "tests/coll/replay/step.h"
#include "tests/coll/report.h"
#include "tests/coll/watchdog.h"

/* ---- workloads ---- */

static int load_part(struct replay_part *part, const char *argument, const struct options *options,
                     int ranks, char *error) {
  int result =
      workload_read(&part->workload, argument, options->compute_scale, options->bytes_scale, error);
  if (result == 0 && ranks > 0)
    result = workload_check(&part->workload, ranks, error);
  if (result == 0 && ranks > 0)
    part->sum = workload_sum(&part->workload, ranks);
  return result;
}

int replay_load(struct replay *replay, const struct options *options, int ranks, char *error) {
  size_t parts = 1;
  for (const char *c = options->replay; *c; c++)
    parts += *c == ',';
  char *list = strdup(options->replay), *rest = list;
  *replay = (struct replay){ .parts = message_allocate(parts, sizeof *replay->parts) };
  int result = 0;
  for (char *argument; result == 0 && (argument = strsep(&rest, ",")); replay->part_count++)
    result = load_part(&replay->parts[replay->part_count], argument, options, ranks, error);
  free(list);
  if (result < 0)
    replay_unload(replay);
  return result;
}

void replay_unload(struct replay *replay) {
  for (size_t i = 0; i < replay->part_count; i++)
    workload_free(&replay->parts[i].workload);
  free(replay->parts);
  *replay = (struct replay){ 0 };
}

size_t replay_bytes(const struct replay *replay) {
  size_t bytes = 0;
  for (size_t i = 0; i < replay->part_count; i++)
    bytes = replay->parts[i].sum.buffer_bytes > bytes ? replay->parts[i].sum.buffer_bytes : bytes;
  return bytes;
}

/* ---- time ---- */

enum { COMPUTE_STEPS_MAX = 10 }; /* of compute alone, whose time varies little */

/* Of one workload. */
struct result {
  const struct replay_part *part;
  double *step_us;   /* options->replay_steps of them, each of the slowest process */
  double mean_us;    /* of these */
  double compute_us; /* mean of a step without its collectives, likewise */
  double cpu_s;      /* user and system time of a process in a step, mean of the processes */
  struct measure_result check;
};

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
  int count = job->options->replay_steps < COMPUTE_STEPS_MAX ? job->options->replay_steps
                                                             : COMPUTE_STEPS_MAX;
  double times_us[COMPUTE_STEPS_MAX];
  rendezvous_barrier(job->rendezvous);
  time_steps(step, part, false, 1, NULL);
  time_steps(step, part, false, count, times_us);
  rendezvous_most(job->rendezvous, times_us, (size_t)count);
  return mean(times_us, count);
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
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

static void run_part(struct job *job, const struct replay_part *part, struct result *result) {
  const struct options *o = job->options;
  *result = (struct result){ .part = part };
  result->step_us = message_allocate((size_t)o->replay_steps, sizeof(double));
  watchdog_set_place("%s", part->workload.name);
  fill_buffers(job);
  struct step *step = step_open(job, part);
  result->compute_us = measure_compute(job, step, part);
  rendezvous_barrier(job->rendezvous);
  time_steps(step, part, true, o->replay_skip, NULL);
  double before_s = cpu_seconds();
  time_steps(step, part, true, o->replay_steps, result->step_us);
  result->cpu_s = (cpu_seconds() - before_s) / o->replay_steps / job->processes;
  rendezvous_sum(job->rendezvous, &result->cpu_s, 1);
  rendezvous_most(job->rendezvous, result->step_us, (size_t)o->replay_steps);
  result->mean_us = mean(result->step_us, o->replay_steps);
  step_check(step, &result->check);
  step_close(step);
}

/* ---- report ---- */

static void print_facts(FILE *table, const struct options *o, const struct result *result) {
  const struct workload_sum *sum = &result->part->sum;
  const char *name = result->part->workload.name;
  fprintf(
      table,
      "# %s: mean %.3f ms of %d steps after %d, compute %.3f ms, exposed %.3f ms, %.4f s of CPU\n",
      name, result->mean_us / 1e3, o->replay_steps, o->replay_skip, result->compute_us / 1e3,
      (result->mean_us - result->compute_us) / 1e3, result->cpu_s);
  fprintf(table, "# %s: %u collectives, %.3f MB a step; ", name, sum->collectives,
          (double)sum->bytes / 1e6);
  if (result->check.has_check)
    fprintf(table, "%llu wrong\n",
            (unsigned long long)(result->check.wrong + result->check.out_of_bounds));
  else
    fputs("not checked\n", table);
  fflush(table);
}

static void remember(json_t *workloads, const struct options *o, const struct result *result) {
  const struct workload *workload = &result->part->workload;
  const struct workload_sum *sum = &result->part->sum;
  json_t *steps = json_array();
  for (int i = 0; i < o->replay_steps; i++)
    json_array_append_new(steps, json_real(result->step_us[i]));
  json_t *wrong =
      result->check.has_check
          ? json_integer((json_int_t)(result->check.wrong + result->check.out_of_bounds))
          : json_null();
  json_t *row = json_pack("{s:s, s:i, s:f, s:f, s:I, s:I, s:i, s:o, s:f, s:f, s:f, s:o}", "name",
                          workload->name, "batch", workload->batch, "compute_scale",
                          o->compute_scale, "bytes_scale", o->bytes_scale, "collectives",
                          (json_int_t)sum->collectives, "bytes_per_step", (json_int_t)sum->bytes,
                          "skipped_steps", o->replay_skip, "step_us", steps, "compute_us",
                          result->compute_us, "exposed_us", result->mean_us - result->compute_us,
                          "cpu_s_per_step", result->cpu_s, "wrong", wrong);
  if (!row || json_array_append_new(workloads, row))
    message_fail("out of memory");
}

static void write_json(const struct job *job, json_t *workloads) {
  const struct options *o = job->options;
  const char *gpu = job->all[0].device_name;
  json_t *all =
      json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:O}", "format", "stratus-replay", "version", 1,
                "nccl", libs.nccl_version_text, "gpu", libs_is_emulated(gpu) ? "emulated" : gpu,
                "hosts", job->hosts, "ranks", job->ranks, "workloads", workloads);
  if (o->json_path)
    report_write_json(all, o->json_path);
  json_decref(all);
}

/* ---- all of it ---- */

void replay_run(struct job *job, const struct replay *replay, FILE *table, uint64_t *wrong,
                uint64_t *out_of_bounds) {
  json_t *workloads = json_array();
  if (table) {
    report_print_ranks(table, job);
  }
  for (size_t i = 0; i < replay->part_count; i++) {
    struct result result;
    run_part(job, &replay->parts[i], &result);
    if (table) {
      print_facts(table, job->options, &result);
      remember(workloads, job->options, &result);
    }
    *wrong += result.check.wrong;
    *out_of_bounds += result.check.out_of_bounds;
    free(result.step_us);
  }
  if (table && fflush(table))
    message_fail("standard output: %s", strerror(errno));
  if (table)
    write_json(job, workloads);
  json_decref(workloads);
}
