/* SPDX-License-Identifier: Apache-2.0 */
/* scale: training steps of tests/workloads on up to 1024 simulated hosts; see README.md. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/version.h"
#include "tests/scale/exact.h"
#include "tests/scale/library.h"

struct job {
  struct options options;
  struct library library;
  struct workload workload;
  json_t *results; /* NULL: text */
};

static int compare(const void *a, const void *b) {
  double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

static void report(struct job *job, unsigned hosts, struct steps_result *result, double wall_s) {
  unsigned measured = job->options.steps.measured;
  double scaling = result->compute_us / result->mean_us;
  qsort(result->step_us, measured, sizeof *result->step_us, compare);
  double p50 = result->step_us[measured / 2], p95 = result->step_us[measured * 19 / 20];
  double p99 = result->step_us[measured * 99 / 100];
  double simulated_s = result->mean_us * (measured + job->options.steps.skipped) / 1e6;
  if (!job->results) {
    printf("%-24s %5u hosts: step %9.2f ms, p50 %9.2f, p95 %9.2f; compute %.2f; scaling %.3f; "
           "%u rings, %u trees; %.1f s simulated in %.2f\n",
           job->workload.name, hosts, result->mean_us / 1e3, p50 / 1e3, p95 / 1e3,
           result->compute_us / 1e3, scaling, result->rings, result->trees, simulated_s, wall_s);
    fflush(stdout);
    return;
  }
  json_array_append_new(
      job->results,
      json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:i, s:i, s:f, s:f}",
                "workload", job->workload.name, "hosts", (int)hosts, "gpus",
                (int)job->options.schedule.gpus, "step_us", result->mean_us, "p50_us", p50,
                "p95_us", p95, "p99_us", p99, "compute_us", result->compute_us, "scaling", scaling,
                "bytes", (json_int_t)result->bytes, "rings", (int)result->rings, "trees",
                (int)result->trees, "simulated_s", simulated_s, "wall_s", wall_s));
}

static int run_hosts(struct job *job, unsigned hosts, char *error) {
  static struct steps_result result;
  struct schedule schedule;
  struct schedule_config config = job->options.schedule;
  config.hosts = hosts;
  int status = workload_check(&job->workload, (int)(hosts * config.gpus), error);
  if (status) {
    return status;
  }
  unsigned *host_services = transport_memory(hosts * sizeof *host_services);
  if (!job->options.is_exact) {
    library_draw(&job->library, hosts, job->options.host.seed, host_services);
  }
  const struct service *services[] = { job->library.services[LIBRARY_RING],
                                       job->library.services[library_tree(hosts)] };
  uint64_t begun_ns = clock_now_ns();
  schedule_init(&schedule, &config, services, library_size(&job->library), host_services);
  if (job->options.is_exact && hosts > 1) {
    struct transport_config all = job->options.host;
    all.connections = config.channels;
    all.network.hosts = hosts;
    all.network.has_switch = hosts > 2;
    schedule.exact = exact_new(&config, &all);
  }
  status = steps_run(&schedule, &job->workload, &job->options.steps, &result, error);
  if (!status) {
    report(job, hosts, &result, (double)(clock_now_ns() - begun_ns) / 1e9);
  }
  if (schedule.exact) {
    exact_free(schedule.exact);
  }
  schedule_free(&schedule);
  free(host_services);
  return status;
}

static int run_workload(struct job *job, const char *name) {
  char error[WORKLOAD_ERROR_MAX];
  int status = workload_read(&job->workload, name, job->options.compute_scale,
                             job->options.bytes_scale, error);
  if (status) {
    return cli_fail("%s\n", error);
  }
  for (unsigned i = 0; i < job->options.hosts_count && !status; i++) {
    status = run_hosts(job, job->options.hosts[i], error);
  }
  workload_free(&job->workload);
  return status ? cli_fail("%s\n", error) : CLI_OK;
}

static json_t *describe_services(const struct library *library) {
  json_t *all = json_array();
  const struct network_config *network = &library->options->host.network;
  unsigned variants = library->options->variants;
  for (unsigned shape = 0; shape < LIBRARY_SHAPES; shape++) {
    for (unsigned i = 0; i < LIBRARY_KINDS * variants; i++) {
      const struct service *service = &library->services[shape][i];
      if (service->connection_count > 0) {
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "algorithm",
                           schedule_algorithm_names[library_algorithms[shape]], "kind",
                           library_kind_names[i / variants], "connections",
                           (int)service->connection_count, "flows", (int)service->flows, "of_nic",
                           service->bytes_per_s / (double)(network->nic_rate * network->nics),
                           "stall_s", (double)service->stall_ns / 1e9));
      }
    }
  }
  return all;
}

static void print_library(const struct job *job, double wall_s) {
  const struct library *library = &job->library;
  json_t *services = describe_services(library), *service;
  size_t i;
  json_array_foreach(services, i, service) {
    const char *algorithm, *kind;
    int connections, flows;
    double of_nic, stall_s;
    json_unpack(service, "{s:s, s:s, s:i, s:i, s:f, s:f}", "algorithm", &algorithm, "kind", &kind,
                "connections", &connections, "flows", &flows, "of_nic", &of_nic, "stall_s",
                &stall_s);
    printf("%s, %s: %d connections of %d flows, %.3f of the NIC%s", algorithm, kind, connections,
           flows, of_nic, stall_s > 0 ? "" : "\n");
    if (stall_s > 0) {
      printf(", stalled for %.2f s\n", stall_s);
    }
  }
  json_decref(services);
  printf("all of it: %.1f s of hosts simulated in %.2f s, %.1f million events\n",
         (double)library->simulated_ns / 1e9, wall_s, (double)library->events / 1e6);
}

static int run_steps(int count, char **arguments, bool is_json) {
  (void)count, (void)arguments;
  static struct job job;
  uint64_t begun_ns = clock_now_ns();
  int status = options_read(&job.options);
  if (status != CLI_OK) {
    return status;
  }
  job.results = is_json ? json_array() : NULL;
  library_init(&job.library, &job.options);
  for (unsigned i = 0; i < job.options.workload_count && status == CLI_OK; i++) {
    status = run_workload(&job, job.options.workloads[i]);
  }
  double wall_s = (double)(clock_now_ns() - begun_ns) / 1e9;
  if (status == CLI_OK && is_json) {
    json_t *all =
        json_pack("{s:s, s:i, s:s, s:o, s:f, s:f, s:O}", "format", "stratus-scale", "version", 1,
                  "transport", options_transport_names[job.options.transport], "services",
                  describe_services(&job.library), "services_simulated_s",
                  (double)job.library.simulated_ns / 1e9, "wall_s", wall_s, "results", job.results);
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(all);
  } else if (status == CLI_OK) {
    print_library(&job, wall_s);
  }
  json_decref(job.results);
  library_free(&job.library);
  return status;
}

int main(int argc, char **argv) {
  static const struct cli_command commands[] = {
    { .name = "steps",
      .summary = "training steps of workloads on many hosts",
      .example = "build/tests/scale steps --workloads resnet50,hf_Bert --hosts 20,125 --gpus 8",
      .has_json = true,
      .options = options_table,
      .run = run_steps },
    { .name = NULL },
  };
  static const struct cli_tool tool = { "scale", "training steps on simulated hosts",
                                        STRATUS_VERSION, commands, NULL };
  return cli_main(&tool, argc, argv);
}
