/* SPDX-License-Identifier: Apache-2.0 */
/* report: columns and headings are those of nccl-tests, for the scripts that read them; bandwidths
 * below 10 GB/s have a third decimal, which those scripts do not mind and slow networks need. */
#include "tests/coll/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/coll/libs.h"
#include "tests/coll/message.h"

struct report {
  FILE *table;
  const struct job *job;
  json_t *results;
  uint64_t out_of_bounds;
  double busbw_sum;
  int busbw_count;
};

static double algbw_gbs(const struct operation_case *c, double time_us) {
  return time_us > 0 ? (double)c->counts.bytes / time_us / 1e3 : 0;
}

static double busbw_gbs(const struct report *report, const struct operation_case *c,
                        double time_us) {
  return algbw_gbs(c, time_us) * operation_bus_factor(c->operation, report->job->ranks);
}

/* ---- the table ---- */

void report_print_ranks(FILE *t, const struct job *job) {
  fprintf(t, "# coll: NCCL %s (%s)\n", libs.nccl_version_text, libs.nccl_path);
  fputs("# Using devices\n", t);
  for (int rank = 0; rank < job->ranks; rank++) {
    const struct job_rank *r = &job->all[rank];
    fprintf(t, "#  Rank %2d Group  0 Pid %6d on %10s device %2d [%s] %s%s\n", rank, r->pid, r->host,
            r->device, r->bus_id, r->device_name,
            libs_is_emulated(r->device_name) ? " (no GPU on this machine)" : "");
  }
  fprintf(t, "# %d ranks on %d hosts\n", job->ranks, job->hosts);
  fflush(t);
}

static void print_head(const struct report *report) {
  const struct job *job = report->job;
  const struct options *o = job->options;
  FILE *t = report->table;
  fprintf(
      t, "# nThread 1 nGpus %d minBytes %llu maxBytes %llu sizes: %d warmup iters: %d iters: %d ",
      o->gpus, (unsigned long long)o->sizes[0], (unsigned long long)o->sizes[o->sizes_count - 1],
      o->sizes_count, o->warmup, o->iterations);
  fprintf(t, "agg iters: 1 validation: %d graph: 0\n#\n", o->checks);
  report_print_ranks(t, job);
}

struct report *report_open(FILE *table, const struct job *job) {
  struct report *report = message_allocate(1, sizeof *report);
  *report = (struct report){ .table = table, .job = job, .results = json_array() };
  print_head(report);
  return report;
}

void report_operation(struct report *report, enum operation operation) {
  fprintf(report->table,
          "#\n# Operation: %s\n#\n"
          "# %60s %35s\n"
          "# %10s %13s %9s %7s %7s %8s %7s %7s %6s %8s %7s %7s %6s\n"
          "# %10s %13s %9s %7s %7s %8s %7s %7s %6s %8s %7s %7s %6s\n",
          operation_infos[operation].name, "out-of-place", "in-place", "size", "count", "type",
          "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong",
          "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
          "(GB/s)", "");
  fflush(report->table);
}

static void print_bandwidth(FILE *table, double gbs) {
  fprintf(table, " %7.*f", gbs < 10 ? 3 : 2, gbs);
}

static void print_result(struct report *report, const struct operation_case *c,
                         const struct measure_result *r) {
  FILE *t = report->table;
  if (!r->has_run) {
    fprintf(t, " %8s %7s %7s %6s", "N/A", "N/A", "N/A", "N/A");
    return;
  }
  double busbw = busbw_gbs(report, c, r->time_us);
  fprintf(t, " %8.*f", r->time_us < 10000 ? 2 : 0, r->time_us);
  print_bandwidth(t, algbw_gbs(c, r->time_us));
  print_bandwidth(t, busbw);
  if (r->has_check)
    fprintf(t, " %6llu", (unsigned long long)r->wrong);
  else
    fprintf(t, " %6s", "N/A");
  report->out_of_bounds += r->out_of_bounds;
  report->busbw_sum += busbw;
  report->busbw_count++;
}

/* ---- JSON ---- */

static json_t *result_as_json(const struct report *report, const struct operation_case *c,
                              const struct measure_result *r) {
  if (!r->has_run)
    return json_null();
  json_t *wrong = r->has_check ? json_integer((json_int_t)r->wrong) : json_null();
  return json_pack("{s:f, s:f, s:f, s:i, s:o}", "time", r->time_us, "alg_bw",
                   algbw_gbs(c, r->time_us), "bus_bw", busbw_gbs(report, c, r->time_us),
                   "iterations", r->iterations, "nwrong", wrong);
}

static void add_calls(json_t *row, const char *key, const struct measure_result *r) {
  if (!r->times_us)
    return;
  json_t *times = json_array();
  for (int i = 0; i < r->iterations; i++)
    json_array_append_new(times, json_real(r->times_us[i]));
  json_object_set_new(row, key, json_pack("{s:o}", "times_us", times));
}

static void remember_row(struct report *report, const struct operation_case *c,
                         const struct measure_result *out_of_place,
                         const struct measure_result *in_place) {
  json_t *row = json_pack("{s:s, s:I, s:I, s:s, s:s, s:i, s:o, s:o}", "op",
                          operation_infos[c->operation].name, "size", (json_int_t)c->counts.bytes,
                          "count", (json_int_t)c->counts.call, "type", element_infos[c->type].name,
                          "redop", operation_redop_names[c->redop], "root", c->root, "out_of_place",
                          result_as_json(report, c, out_of_place), "in_place",
                          result_as_json(report, c, in_place));
  if (!row || json_array_append_new(report->results, row))
    message_fail("out of memory");
  add_calls(row, "out_of_place_per_iter", out_of_place);
  add_calls(row, "in_place_per_iter", in_place);
}

/* A file appears whole; what is no file, such as /dev/null, must not be replaced by one. */
void report_write_json(const json_t *all, const char *path) {
  struct stat status;
  bool is_special = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
  char temporary[4096];
  int length = snprintf(temporary, sizeof temporary, "%s%s", path, is_special ? "" : ".new");
  if (!all || length >= (int)sizeof temporary)
    message_fail("%s: the results cannot be written as JSON", path);
  if (json_dump_file(all, temporary, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ||
      (!is_special && rename(temporary, path)))
    message_fail("%s: %s", path, strerror(errno));
}

static void write_json(const struct report *report, double average) {
  const struct job *job = report->job;
  const char *name = job->all[0].device_name, *path = job->options->json_path;
  json_t *all =
      json_pack("{s:i, s:s, s:s, s:i, s:i, s:O, s:I, s:f}", "version", 1, "nccl",
                libs.nccl_version_text, "gpu", libs_is_emulated(name) ? "emulated" : name, "ranks",
                job->ranks, "hosts", job->hosts, "results", report->results, "out_of_bounds",
                (json_int_t)report->out_of_bounds, "avg_bus_bw", average);
  report_write_json(all, path);
  json_decref(all);
}

/* ---- both ---- */

void report_row(struct report *report, const struct operation_case *c,
                const struct measure_result *out_of_place, const struct measure_result *in_place) {
  fprintf(report->table, "%12zu %13zu %9s %7s %7d", c->counts.bytes, c->counts.call,
          element_infos[c->type].name, operation_redop_names[c->redop], c->root);
  print_result(report, c, out_of_place);
  print_result(report, c, in_place);
  fputc('\n', report->table);
  fflush(report->table);
  if (report->job->options->json_path)
    remember_row(report, c, out_of_place, in_place);
}

void report_close(struct report *report) {
  double average = report->busbw_count ? report->busbw_sum / report->busbw_count : 0;
  fprintf(report->table, "# Out of bounds values : %llu %s\n# Avg bus bandwidth    : %g\n#\n",
          (unsigned long long)report->out_of_bounds, report->out_of_bounds ? "FAILED" : "OK",
          average);
  if (fflush(report->table))
    message_fail("standard output: %s", strerror(errno));
  if (report->job->options->json_path)
    write_json(report, average);
  json_decref(report->results);
  free(report);
}
