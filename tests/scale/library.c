/* SPDX-License-Identifier: Apache-2.0 */
/* See library.h. */
#include "tests/scale/library.h"

#include <stdlib.h>

#include "common/random.h"

const char *const library_kind_names[LIBRARY_KINDS] = { "healthy", "nic-down", "slow-nic" };

/* A ring has the two slices of a chunk under way, or one where a chunk is no larger than a slice;
 * a tree chunk after chunk, as far as there are buffers. */
static const struct {
  unsigned connections, window;
  uint64_t single_bytes;
} shapes[SCHEDULE_ALGORITHMS] = {
  [SCHEDULE_RING] = { SCHEDULE_CHANNELS, SCHEDULE_SLICES, SCHEDULE_LEAST_SLICE_BYTES },
  [SCHEDULE_TREE] = { SCHEDULE_TREE_CONNECTIONS, SCHEDULE_TREE_WINDOW, 0 },
};

/* All of the NIC and nothing but it: what no transport can exceed. */
static void make_ideal(const struct options *options, unsigned connections,
                       struct service *service) {
  const struct network_config *network = &options->host.network;
  double rate = (double)network->nic_rate * network->nics;
  *service = (struct service){ .connection_count = connections, .bytes_per_s = rate };
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

static void measure_one(struct library *library, enum schedule_algorithm algorithm,
                        enum library_kind kind, unsigned variant, struct service *service) {
  const struct options *options = library->options;
  if (options->transport == OPTIONS_IDEAL) {
    make_ideal(options, shapes[algorithm].connections, service);
    return;
  }
  struct service_config config = {
    .transport = options->host,
    .learn_ns = options->learn_ns,
    .learn_bytes = options->learn_bytes,
    .window = shapes[algorithm].window,
    .single_bytes = shapes[algorithm].single_bytes,
    .down_nics = kind == LIBRARY_FAILED ? 1 : 0,
  };
  config.transport.connections = shapes[algorithm].connections;
  config.transport.seed += 1000u * variant;
  if (kind == LIBRARY_SLOW) {
    double rate = (double)config.transport.network.nic_rate * options->slow_rate;
    config.transport.network.nic_rate = (uint64_t)rate;
  }
  service_measure(&config, service);
  library->simulated_ns += service->simulated_ns;
  library->events += service->events;
}

static void need(struct library *library, enum library_kind kind) {
  unsigned variants = library->options->variants;
  for (int algorithm = 0; algorithm < SCHEDULE_ALGORITHMS; algorithm++) {
    bool is_used = library->options->steps.choice == STEPS_AUTO ||
                   (int)library->options->steps.choice == algorithm || algorithm == SCHEDULE_RING;
    if (!is_used || library->is_measured[algorithm][kind]) {
      continue;
    }
    library->is_measured[algorithm][kind] = true;
    for (unsigned variant = 0; variant < variants; variant++) {
      measure_one(library, (enum schedule_algorithm)algorithm, kind, variant,
                  &library->services[algorithm][kind * variants + variant]);
    }
  }
}

void library_draw(struct library *library, unsigned hosts, uint64_t seed, unsigned *host_services) {
  const struct options *options = library->options;
  double *kinds = transport_memory(hosts * sizeof *kinds);
  uint64_t random = seed;
  steps_draw_hosts(hosts, options->failed_share, &random, kinds, LIBRARY_FAILED);
  steps_draw_hosts(hosts, options->slow_share, &random, kinds, LIBRARY_SLOW);
  for (unsigned host = 0; host < hosts; host++) {
    enum library_kind kind = (enum library_kind)kinds[host];
    need(library, kind);
    host_services[host] =
        (unsigned)kind * options->variants + (unsigned)(random_next(&random) % options->variants);
  }
  free(kinds);
}

unsigned library_size(const struct library *library) {
  return LIBRARY_KINDS * library->options->variants;
}

void library_init(struct library *library, const struct options *options) {
  *library = (struct library){ .options = options };
  for (int i = 0; i < SCHEDULE_ALGORITHMS; i++) {
    library->services[i] = transport_memory(library_size(library) * sizeof(struct service));
  }
}

void library_free(struct library *library) {
  free(library->services[SCHEDULE_RING]);
  free(library->services[SCHEDULE_TREE]);
}
