/* SPDX-License-Identifier: Apache-2.0 */
/* replay_report: percentiles, samples per second, and what explains them. */
#include "tuner_plugin/tools/coll/replay/replay_report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tuner_plugin/tools/coll/libs.h"
#include "tuner_plugin/tools/coll/message.h"
#include "tuner_plugin/tools/coll/report.h"

struct replay_report {
  FILE *table;
  const struct job *job;
  json_t *workloads;
};

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

double replay_percentile(const double *sorted, int count, double percent) {
  double place = percent / 100 * (count - 1);
  int below = (int)place;
  int above = below + 1 < count ? below + 1 : below;
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

struct replay_report *replay_report_open(FILE *table, const struct job *job) {
  struct replay_report *report = message_allocate(1, sizeof *report);
  *report = (struct replay_report){ .table = table, .job = job, .workloads = json_array() };
  report_print_library(table);
  report_print_ranks(table, job);
  return report;
}

/* ---- lines ---- */

static void print_percentiles(const struct replay_report *report,
                              const struct replay_result *result) {
  static const int percents[] = { 50, 75, 90, 95 };
  const struct job *job = report->job;
  int count = job->options->replay_steps;
  double *sorted = message_allocate((size_t)count, sizeof *sorted);
  memcpy(sorted, result->step_us, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare);
  fprintf(report->table, "%s: %d GPUs -- %dM/%dG:", result->part->workload.name, job->ranks,
          job->hosts, job->ranks);
  for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
    double s = replay_percentile(sorted, count, percents[i]) / 1e6;
    double samples = result->part->workload.batch / s;
    fprintf(report->table, " p%d: %.*fs %.*f/s", percents[i], s < 0.01 ? 6 : 3, s,
            samples < 10 ? 2 : 0, samples);
  }
  fputc('\n', report->table);
  free(sorted);
}

static void print_facts(const struct replay_report *report, const struct replay_result *result) {
  const struct options *o = report->job->options;
  const struct plan_sum *sum = &result->part->sum;
  const char *name = result->part->workload.name;
  fprintf(
      report->table,
      "# %s: mean %.3f ms of %d steps after %d, compute %.3f ms, exposed %.3f ms, %.4f s of CPU\n",
      name, result->mean_us / 1e3, o->replay_steps, o->replay_skip, result->compute_us / 1e3,
      (result->mean_us - result->compute_us) / 1e3, result->cpu_s);
  fprintf(report->table, "# %s: %u collectives, %.3f MB a step; ", name, sum->collectives,
          (double)sum->bytes / 1e6);
  if (result->check.has_check)
    fprintf(report->table, "%llu wrong\n",
            (unsigned long long)(result->check.wrong + result->check.out_of_bounds));
  else
    fputs("not checked\n", report->table);
  fflush(report->table);
}

/* ---- JSON ---- */

static void remember(struct replay_report *report, const struct replay_result *result) {
  const struct options *o = report->job->options;
  const struct workload *workload = &result->part->workload;
  const struct plan_sum *sum = &result->part->sum;
  json_t *steps = json_array();
  for (int i = 0; i < o->replay_steps; i++)
    json_array_append_new(steps, json_real(result->step_us[i]));
  json_t *wrong =
      result->check.has_check
          ? json_integer((json_int_t)(result->check.wrong + result->check.out_of_bounds))
          : json_null();
  json_t *row = json_pack(
      "{s:s, s:s, s:i, s:s, s:f, s:f, s:I, s:I, s:i, s:o, s:f, s:f, s:f, s:I, s:I, s:o}", "name",
      workload->name, "source", workload->source, "batch", workload->batch, "parallel",
      workload_parallel_names[workload->parallel], "compute_scale", o->compute_scale, "bytes_scale",
      o->bytes_scale, "collectives", (json_int_t)sum->collectives, "bytes_per_step",
      (json_int_t)sum->bytes, "skipped_steps", o->replay_skip, "step_us", steps, "compute_us",
      result->compute_us, "exposed_us", result->mean_us - result->compute_us, "cpu_s_per_step",
      result->cpu_s, "began_ns", (json_int_t)result->began_ns, "ended_ns",
      (json_int_t)result->ended_ns, "wrong", wrong);
  if (!row || json_array_append_new(report->workloads, row))
    message_fail("out of memory");
}

void replay_report_add(struct replay_report *report, const struct replay_result *result) {
  print_percentiles(report, result);
  print_facts(report, result);
  remember(report, result);
}

void replay_report_close(struct replay_report *report) {
  const struct job *job = report->job;
  const struct options *o = job->options;
  const char *gpu = job->all[0].device_name;
  if (fflush(report->table))
    message_fail("standard output: %s", strerror(errno));
  json_t *all = json_pack("{s:s, s:i, s:s?, s:s, s:s, s:i, s:i, s:O}", "format", "stratus-replay",
                          "version", 1, "label", o->label, "nccl", libs.nccl_version_text, "gpu",
                          libs_is_emulated(gpu) ? "emulated" : gpu, "hosts", job->hosts, "ranks",
                          job->ranks, "workloads", report->workloads);
  if (o->json_path)
    report_write_json(all, o->json_path);
  json_decref(all);
  json_decref(report->workloads);
  free(report);
}
