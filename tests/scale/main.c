/* SPDX-License-Identifier: Apache-2.0 */
/* scale: training steps of tests/workloads on many simulated hosts; JSON on stdout. See README.md.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/random.h"
#include "common/version.h"
#include "tests/scale/options.h"

/* ---- library: the services that hosts draw theirs from: for each kind of host several, which
 * differ by the paths that their flows drew; each is measured once (service.h), and only if a host
 * needs it
 * ---- */

/* Worse ones later: two hosts get along as the worse of them does. */
enum library_kind { LIBRARY_HEALTHY, LIBRARY_FAILED, LIBRARY_SLOW, LIBRARY_KINDS };

/* Which connections of a host are busy at a time: in a tree of two hosts each has one neighbour, to
 * which it sends up one tree and down the other. */
enum library_shape { LIBRARY_RING, LIBRARY_TREE, LIBRARY_TREE_OF_TWO, LIBRARY_SHAPES };

struct library {
  const struct options *options;
  struct service *services[LIBRARY_SHAPES]; /* [kind][variant] */
  bool is_measured[LIBRARY_SHAPES][LIBRARY_KINDS];
  uint64_t simulated_ns;
};

/* A ring has the two slices of a chunk in flight, or one where a chunk is no larger than a slice;
 * a tree chunk after chunk, as far as there are buffers. */
static const struct {
  unsigned for_channel, window, posted; /* for_channel: connections */
  uint64_t single_bytes;
} shapes[LIBRARY_SHAPES] = {
  [LIBRARY_RING] = { 1, SCHEDULE_SLICES, SCHEDULE_RING_WINDOW, SCHEDULE_LEAST_SLICE_BYTES },
  [LIBRARY_TREE] = { 2, SCHEDULE_TREE_WINDOW, SCHEDULE_TREE_WINDOW, 0 },
  [LIBRARY_TREE_OF_TWO] = { 1, SCHEDULE_TREE_WINDOW, SCHEDULE_TREE_WINDOW, 0 },
};

/* Of a tree of so many hosts. */
static enum library_shape library_tree(unsigned hosts) {
  return hosts == 2 ? LIBRARY_TREE_OF_TWO : LIBRARY_TREE;
}

/* All of the NIC and nothing but it: what no transport can exceed. */
static void make_ideal(const struct options *options, unsigned connections,
                       struct service *service) {
  const struct network_config *network = &options->host.network;
  double rate = (double)network->nic_rate * network->nics;
  *service = (struct service){ .connection_count = connections };
  for (unsigned c = 0; c < connections; c++) {
    for (unsigned size = 0; size < SERVICE_SIZES; size++) {
      double ns = 1e9 * (double)((uint64_t)SERVICE_LEAST_BYTES << size) / rate;
      for (unsigned i = 0; i < SERVICE_SAMPLES; i++) {
        service->connections[c].latency[size][i] = ns;
        service->connections[c].gap[size][i] = ns * connections;
      }
    }
  }
}

static void measure_one(struct library *library, enum library_shape shape, enum library_kind kind,
                        unsigned variant, struct service *service) {
  const struct options *options = library->options;
  unsigned connections = shapes[shape].for_channel * SCHEDULE_CHANNELS;
  if (options->transport == OPTIONS_IDEAL) {
    make_ideal(options, connections, service);
    return;
  }
  struct service_config config = {
    .transport = options->host,
    .learn_ns = options->learn_ns,
    .learn_bytes = options->learn_bytes,
    .window = shapes[shape].window,
    .posted = shapes[shape].posted,
    .single_bytes = shapes[shape].single_bytes,
    .down_nics = kind == LIBRARY_FAILED ? 1 : 0,
  };
  config.transport.connections = connections;
  config.transport.seed += 1000u * variant;
  if (kind == LIBRARY_SLOW) {
    double rate = (double)config.transport.network.nic_rate * options->slow_rate;
    config.transport.network.nic_rate = (uint64_t)rate;
  }
  service_measure(&config, service);
  library->simulated_ns += service->simulated_ns;
}

static void need(struct library *library, enum library_kind kind, unsigned hosts) {
  unsigned variants = library->options->variants;
  bool has_trees = library->options->steps.choice != STEPS_RING;
  for (enum library_shape shape = 0; shape < LIBRARY_SHAPES; shape++) {
    bool is_used = shape == LIBRARY_RING || (has_trees && shape == library_tree(hosts));
    if (!is_used || library->is_measured[shape][kind]) {
      continue;
    }
    library->is_measured[shape][kind] = true;
    for (unsigned variant = 0; variant < variants; variant++) {
      measure_one(library, shape, kind, variant,
                  &library->services[shape][kind * variants + variant]);
    }
  }
}

/* Draws each host's service, and measures what is missing. */
static void library_draw(struct library *library, unsigned hosts, uint64_t seed,
                         unsigned *host_services) {
  const struct options *options = library->options;
  double *kinds = transport_memory(hosts * sizeof *kinds);
  uint64_t random = seed;
  steps_draw_hosts(hosts, options->failed_share, &random, kinds, LIBRARY_FAILED);
  steps_draw_hosts(hosts, options->slow_share, &random, kinds, LIBRARY_SLOW);
  for (unsigned host = 0; host < hosts; host++) {
    enum library_kind kind = (enum library_kind)kinds[host];
    need(library, kind, hosts);
    host_services[host] =
        (unsigned)kind * options->variants + (unsigned)(random_next(&random) % options->variants);
  }
  free(kinds);
}

/* Of services[]. */
static unsigned library_size(const struct library *library) {
  return LIBRARY_KINDS * library->options->variants;
}

static void library_init(struct library *library, const struct options *options) {
  *library = (struct library){ .options = options };
  for (int i = 0; i < LIBRARY_SHAPES; i++) {
    library->services[i] = transport_memory(library_size(library) * sizeof(struct service));
  }
}

static void library_free(struct library *library) {
  for (int i = 0; i < LIBRARY_SHAPES; i++) {
    free(library->services[i]);
  }
}

/* ---- the program ---- */

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
