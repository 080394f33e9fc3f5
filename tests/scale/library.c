/* SPDX-License-Identifier: Apache-2.0 */
/* See library.h. */
#include "tests/scale/library.h"

#include <stdlib.h>

#include "common/random.h"

/* A ring has the two slices of a chunk in flight, or one where a chunk is no larger than a slice;
 * a tree chunk after chunk, as far as there are buffers. */
static const struct {
  unsigned for_channel, window; /* for_channel: connections */
  uint64_t single_bytes;
} shapes[LIBRARY_SHAPES] = {
  [LIBRARY_RING] = { 1, SCHEDULE_SLICES, SCHEDULE_LEAST_SLICE_BYTES },
  [LIBRARY_TREE] = { 2, SCHEDULE_TREE_WINDOW, 0 },
  [LIBRARY_TREE_OF_TWO] = { 1, SCHEDULE_TREE_WINDOW, 0 },
};

enum library_shape library_tree(unsigned hosts) {
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

void library_draw(struct library *library, unsigned hosts, uint64_t seed, unsigned *host_services) {
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

unsigned library_size(const struct library *library) {
  return LIBRARY_KINDS * library->options->variants;
}

void library_init(struct library *library, const struct options *options) {
  *library = (struct library){ .options = options };
  for (int i = 0; i < LIBRARY_SHAPES; i++) {
    library->services[i] = transport_memory(library_size(library) * sizeof(struct service));
  }
}

void library_free(struct library *library) {
  for (int i = 0; i < LIBRARY_SHAPES; i++) {
    free(library->services[i]);
  }
}
