/* SPDX-License-Identifier: Apache-2.0 */
/* scale: training steps of tests/workloads on many simulated hosts; JSON on stdout. See README.md.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/version.h"
#include "tests/scale/library.h"

struct job {
  struct options options;
  struct library library;
  struct workload workload;
  json_t *results;
};

static void report(struct job *job, unsigned hosts, const struct steps_result *result,
                   double wall_s) {
  json_array_append_new(
      job->results,
      json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:i, s:i, s:f, s:f}", "workload",
                job->workload.name, "hosts", (int)hosts, "gpus", (int)job->options.schedule.gpus,
                "step_us", result->mean_us, "compute_us", result->compute_us, "scaling",
                result->compute_us / result->mean_us, "rings", (int)result->rings, "trees",
                (int)result->trees, "simulated_s",
                result->mean_us * (job->options.steps.measured + job->options.steps.skipped) / 1e6,
                "wall_s", wall_s));
}

static int run_hosts(struct job *job, unsigned hosts, char *error) {
  struct steps_result result;
  struct schedule schedule;
  struct schedule_config config = job->options.schedule;
  config.hosts = hosts;
  int status = workload_check(&job->workload, (int)(hosts * config.gpus), error);
  if (status) {
    return status;
  }
  unsigned *host_services = transport_memory(hosts * sizeof *host_services);
  library_draw(&job->library, hosts, job->options.host.seed, host_services);
  const struct service *services[] = { job->library.services[LIBRARY_RING],
                                       job->library.services[library_tree(hosts)] };
  uint64_t begun_ns = clock_now_ns();
  schedule_init(&schedule, &config, services, library_size(&job->library), host_services);
  status = steps_run(&schedule, &job->workload, &job->options.steps, &result, error);
  if (!status) {
    report(job, hosts, &result, (double)(clock_now_ns() - begun_ns) / 1e9);
  }
  schedule_free(&schedule);
  free(host_services);
  return status;
}

static int run_workload(struct job *job, const char *name) {
  char error[WORKLOAD_ERROR_MAX];
  int status = workload_read(&job->workload, name, 1, job->options.bytes_scale, error);
  if (status) {
    return cli_fail("%s", error);
  }
  for (unsigned i = 0; i < job->options.hosts_count && !status; i++) {
    status = run_hosts(job, job->options.hosts[i], error);
  }
  workload_free(&job->workload);
  return status ? cli_fail("%s", error) : CLI_OK;
}

static int run(int count, char **arguments, bool is_json) {
  (void)count, (void)arguments, (void)is_json;
  static struct job job;
  uint64_t begun_ns = clock_now_ns();
  int status = options_read(&job.options);
  if (status != CLI_OK) {
    return status;
  }
  job.results = json_array();
  library_init(&job.library, &job.options);
  for (unsigned i = 0; i < job.options.workload_count && status == CLI_OK; i++) {
    status = run_workload(&job, job.options.workloads[i]);
  }
  if (status == CLI_OK) {
    json_t *all =
        json_pack("{s:s, s:i, s:f, s:f, s:O}", "format", "stratus-scale", "version", 2,
                  "services_simulated_s", (double)job.library.simulated_ns / 1e9, "wall_s",
                  (double)(clock_now_ns() - begun_ns) / 1e9, "results", job.results);
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(all);
  }
  json_decref(job.results);
  library_free(&job.library);
  return status;
}

int main(int argc, char **argv) {
  static const struct cli_command command = {
    .name = "scale",
    .summary = "Training steps of workloads on many simulated hosts, as JSON.",
    .example = "build/tests/scale --workloads resnet50,hf_Bert --hosts 20,125 --gpus 8",
    .options = options_table,
    .run = run,
  };
  return cli_program(&command, STRATUS_VERSION, argc, argv);
}
