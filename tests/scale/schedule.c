/* SPDX-License-Identifier: Apache-2.0 */
/* See schedule.h. */
#include "tests/scale/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NCCL's buffer of 4 MiB in 8 steps; a chunk of a ring has 4 of them, a slice 2, but at least a
 * 32nd of that. */
#define STEP_BYTES (512u << 10)
#define RING_CHUNK_BYTES (4 * STEP_BYTES)
#define GRAIN_BYTES 16u

/* ---- connections ---- */

static uint64_t round_up(uint64_t bytes) {
  return (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
}

/* What every connection gives to messages of this size; there are two sizes at a time. */
static void prepare_points(struct schedule *schedule, enum schedule_algorithm algorithm,
                           unsigned which, uint64_t bytes) {
  for (unsigned s = 0; s < schedule->service_count; s++) {
    const struct service *service = &schedule->services[algorithm][s];
    for (unsigned c = 0; c < service->connection_count; c++) {
      schedule->points[which][s * TRANSPORT_CONNECTIONS_MAX + c] =
          service_at(&service->connections[c], bytes);
    }
  }
}

/* A message that is ready then. Returns when it arrives. */
static double edge_send(struct schedule *schedule, struct edge *edge, unsigned window,
                        unsigned which, uint64_t bytes, double ready_ns) {
  const struct service_point *point =
      &schedule->points[which][edge->service * TRANSPORT_CONNECTIONS_MAX + edge->connection];
  unsigned sample = (unsigned)(edge->count % SERVICE_SAMPLES);
  double *slot = &edge->window[edge->count % window];
  double post_ns = fmax(ready_ns, *slot + schedule->config.latency_ns);
  double latency = point->latency[sample], gap = point->gap[sample];
  edge->due_ns = fmax(edge->due_ns, post_ns + latency - gap - point->lead) + gap;
  double wire_ns = (double)bytes * schedule->config.wire_ps / 1000;
  double arrived_ns = fmax(fmax(post_ns + latency, edge->due_ns), edge->arrived_ns + wire_ns);
  *slot = edge->arrived_ns = arrived_ns;
  edge->count++;
  edge->bytes += bytes;
  return arrived_ns;
}

/* ---- ring ---- */

struct ring {
  struct schedule *schedule;
  struct edge *edges;
  double *kernel_ns; /* by host: the GPU is done with what it did before */
  double *arrivals;  /* [step modulo GPUs][slice][host] */
  unsigned steps;
};

/* One step of one slice, on all hosts: what arrived so many steps before is reduced and sent on.
 * From the last host to the first, so that what a host reads is not what is written in this step.
 */
static void ring_step(const struct ring *ring, unsigned step, unsigned slice, uint64_t bytes) {
  struct schedule *schedule = ring->schedule;
  const struct schedule_config *config = &schedule->config;
  unsigned hosts = config->hosts, gpus = config->gpus;
  double *arrivals = ring->arrivals + (size_t)(step % gpus * SCHEDULE_SLICES + slice) * hosts;
  double copy_ns = (double)bytes * config->copy_ps / 1000, first_ns = arrivals[0];
  for (unsigned host = hosts; host-- > 0;) {
    double *kernel_ns = &ring->kernel_ns[host];
    if (step >= gpus) {
      double arrived_ns = host == 0 ? first_ns : arrivals[host];
      *kernel_ns = fmax(*kernel_ns,
                        arrived_ns + config->hop_ns + gpus * config->inside_ns - config->inside_ns);
    } else if (step > 0) {
      *kernel_ns += config->inside_ns;
    }
    *kernel_ns += copy_ns;
    arrivals[host + 1 < hosts ? host + 1 : 0] =
        edge_send(schedule, &ring->edges[host], SCHEDULE_RING_WINDOW, slice, bytes, *kernel_ns);
  }
}

/* The last messages arrive and pass through the host. */
static void ring_finish(const struct ring *ring, const uint64_t slices[SCHEDULE_SLICES]) {
  const struct schedule_config *config = &ring->schedule->config;
  unsigned hosts = config->hosts, last = (ring->steps - 1) % config->gpus;
  for (unsigned slice = 0; slice < SCHEDULE_SLICES && slices[slice] > 0; slice++) {
    const double *arrivals = ring->arrivals + (size_t)(last * SCHEDULE_SLICES + slice) * hosts;
    for (unsigned host = 0; host < hosts; host++) {
      ring->kernel_ns[host] =
          fmax(ring->kernel_ns[host],
               arrivals[host] + config->hop_ns + (config->gpus - 1) * config->inside_ns) +
          (double)slices[slice] * config->copy_ps / 1000;
    }
  }
}

static uint64_t channel_bytes(uint64_t bytes) {
  return round_up((bytes + SCHEDULE_CHANNELS - 1) / SCHEDULE_CHANNELS);
}

/* Of a loop of a ring, of which so many bytes are left. */
static void ring_slices(uint64_t left, unsigned ranks, uint64_t slices[SCHEDULE_SLICES]) {
  uint64_t chunk = round_up((left + ranks - 1) / ranks);
  chunk = chunk < RING_CHUNK_BYTES ? chunk : RING_CHUNK_BYTES;
  uint64_t first = round_up((chunk + SCHEDULE_SLICES - 1) / SCHEDULE_SLICES);
  first = first > SCHEDULE_LEAST_SLICE_BYTES ? first : SCHEDULE_LEAST_SLICE_BYTES;
  slices[0] = first < chunk ? first : chunk;
  slices[1] = chunk - slices[0];
}

static void ring_loop(const struct ring *ring, const uint64_t slices[SCHEDULE_SLICES]) {
  for (unsigned slice = 0; slice < SCHEDULE_SLICES && slices[slice] > 0; slice++) {
    prepare_points(ring->schedule, SCHEDULE_RING, slice, slices[slice]);
  }
  for (unsigned step = 0; step < ring->steps; step++) {
    for (unsigned slice = 0; slice < SCHEDULE_SLICES && slices[slice] > 0; slice++) {
      ring_step(ring, step, slice, slices[slice]);
    }
  }
  ring_finish(ring, slices);
}

static void run_ring(struct schedule *schedule, enum operation operation, uint64_t bytes,
                     const double *start_ns, double *end_ns) {
  unsigned hosts = schedule->config.hosts, ranks = hosts * schedule->config.gpus;
  uint64_t of_channel = channel_bytes(bytes);
  memcpy(end_ns, start_ns, hosts * sizeof *end_ns);
  for (unsigned channel = 0; channel < SCHEDULE_CHANNELS; channel++) {
    struct ring ring = {
      .schedule = schedule,
      .edges = schedule->ring + channel * hosts,
      .kernel_ns = schedule->scratch,
      .arrivals = schedule->scratch + hosts,
      .steps = (operation == OPERATION_ALL_REDUCE ? 2 : 1) * (ranks - 1),
    };
    memcpy(ring.kernel_ns, start_ns, hosts * sizeof *start_ns);
    for (uint64_t left = of_channel; left > 0;) {
      uint64_t slices[SCHEDULE_SLICES];
      ring_slices(left, ranks, slices);
      uint64_t loop = (slices[0] + slices[1]) * ranks;
      left -= loop < left ? loop : left;
      ring_loop(&ring, slices);
    }
    for (unsigned host = 0; host < hosts; host++) {
      end_ns[host] = fmax(end_ns[host], ring.kernel_ns[host]);
    }
  }
}

/* ---- trees ---- */

/* The binary tree in which a host's level is its lowest bit that is set; 0 is the root. */
static int tree_parent(unsigned hosts, unsigned host) {
  unsigned bit = host & -host;
  unsigned above = (host ^ bit) | bit << 1;
  return host == 0 ? -1 : above < hosts ? (int)above : (int)(host ^ bit);
}

/* The second tree is the first one with other hosts in its places, so that leaves of one are inside
 * of the other: turned by one if their number is odd, else mirrored. */
static int double_tree_parent(unsigned tree, unsigned hosts, unsigned host) {
  if (tree == 0) {
    return tree_parent(hosts, host);
  }
  bool is_odd = hosts % 2 == 1;
  int parent = tree_parent(hosts, is_odd ? (host + hosts - 1) % hosts : hosts - 1 - host);
  return parent < 0 ? -1 : is_odd ? (int)(((unsigned)parent + 1) % hosts) : (int)hosts - 1 - parent;
}

static unsigned depth_of(const int *parents, unsigned host) {
  unsigned depth = 0;
  for (int at = parents[host]; at >= 0; at = parents[at]) {
    depth++;
  }
  return depth;
}

static void make_tree(struct schedule *schedule, unsigned channel) {
  unsigned hosts = schedule->config.hosts, placed = 0, deepest = 0;
  int *parents = schedule->parents + channel * hosts;
  for (unsigned host = 0; host < hosts; host++) {
    parents[host] = double_tree_parent(channel % 2, hosts, host);
  }
  for (unsigned host = 0; host < hosts; host++) {
    unsigned depth = depth_of(parents, host);
    deepest = depth > deepest ? depth : deepest;
  }
  for (unsigned depth = deepest + 1; depth-- > 0;) {
    for (unsigned host = 0; host < hosts; host++) {
      if (depth_of(parents, host) == depth) {
        schedule->order[channel * hosts + placed++] = host;
      }
    }
  }
  schedule->depth = deepest > schedule->depth ? deepest : schedule->depth;
}

/* So that there are enough to fill the trees: src/enqueue.cc. */
static uint64_t tree_chunk_bytes(const struct schedule *schedule, uint64_t bytes) {
  static const struct {
    unsigned factor;
    uint64_t least;
  } rules[] = { { 8, 128u << 10 }, { 4, 64u << 10 }, { 1, 32u << 10 } };
  uint64_t chunk = STEP_BYTES, depth = schedule->depth + schedule->config.gpus - 1;
  for (unsigned i = 0; i < 3; i++) {
    while (bytes / (SCHEDULE_CHANNELS * chunk) < depth * rules[i].factor &&
           chunk > rules[i].least) {
      chunk /= 2;
    }
  }
  return chunk;
}

struct tree {
  struct schedule *schedule;
  const int *parents;
  const unsigned *order;
  struct edge *up, *down;
  double *up_ns, *down_ns;      /* by host: its GPU is done with the chunk before, that way */
  double *reduced_ns, *sent_ns; /* by host: what its children sent is there; its parent's */
};

/* One chunk goes up and comes down. which: its size, of two. */
static void tree_chunk(const struct tree *tree, unsigned which, uint64_t bytes, bool is_first) {
  struct schedule *schedule = tree->schedule;
  const struct schedule_config *config = &schedule->config;
  unsigned hosts = config->hosts;
  double copy_ns = (double)bytes * config->copy_ps / 1000;
  double inside_ns = (is_first ? config->gpus - 1 : 0) * config->inside_ns;
  memset(tree->reduced_ns, 0, hosts * sizeof *tree->reduced_ns);
  for (unsigned i = 0; i < hosts; i++) {
    unsigned host = tree->order[i];
    int parent = tree->parents[host];
    double ready_ns = fmax(tree->up_ns[host] + inside_ns, tree->reduced_ns[host]) + copy_ns;
    tree->up_ns[host] = ready_ns;
    if (parent < 0) {
      tree->sent_ns[host] = ready_ns;
      continue;
    }
    double arrived_ns =
        edge_send(schedule, &tree->up[host], SCHEDULE_TREE_WINDOW, which, bytes, ready_ns) +
        config->hop_ns + config->inside_ns * (config->gpus > 1);
    tree->reduced_ns[parent] = fmax(tree->reduced_ns[parent], arrived_ns);
  }
  for (unsigned i = hosts; i-- > 0;) {
    unsigned host = tree->order[i];
    int parent = tree->parents[host];
    if (parent >= 0) {
      double arrived_ns = edge_send(schedule, &tree->down[host], SCHEDULE_TREE_WINDOW, which, bytes,
                                    tree->sent_ns[parent]) +
                          config->hop_ns + config->inside_ns * (config->gpus > 1);
      tree->down_ns[host] = fmax(tree->down_ns[host], arrived_ns) + copy_ns;
      tree->sent_ns[host] = tree->down_ns[host];
    }
  }
}

static void run_tree(struct schedule *schedule, uint64_t bytes, const double *start_ns,
                     double *end_ns) {
  unsigned hosts = schedule->config.hosts;
  uint64_t of_channel = channel_bytes(bytes);
  uint64_t chunk = tree_chunk_bytes(schedule, bytes);
  double inside_ns = (schedule->config.gpus - 1) * schedule->config.inside_ns;
  memcpy(end_ns, start_ns, hosts * sizeof *end_ns);
  uint64_t rest = of_channel % chunk;
  prepare_points(schedule, SCHEDULE_TREE, 0, chunk);
  prepare_points(schedule, SCHEDULE_TREE, 1, rest > 0 ? rest : chunk);
  for (unsigned number = 0; number < SCHEDULE_CHANNELS; number++) {
    double *scratch = schedule->scratch;
    struct tree tree = { schedule,
                         schedule->parents + number * hosts,
                         schedule->order + number * hosts,
                         schedule->up + number * hosts,
                         schedule->down + number * hosts,
                         scratch,
                         scratch + hosts,
                         scratch + 2 * hosts,
                         scratch + 3 * hosts };
    memcpy(tree.up_ns, start_ns, hosts * sizeof *start_ns);
    memcpy(tree.down_ns, start_ns, hosts * sizeof *start_ns);
    for (uint64_t at = 0; at < of_channel; at += chunk) {
      bool is_rest = of_channel - at < chunk;
      tree_chunk(&tree, is_rest, is_rest ? rest : chunk, at == 0);
    }
    for (unsigned host = 0; host < hosts; host++) {
      double done_ns = fmax(tree.up_ns[host], tree.down_ns[host]) + inside_ns;
      end_ns[host] = fmax(end_ns[host], done_ns);
    }
  }
}

/* ---- all of it ---- */

void schedule_run(struct schedule *schedule, enum schedule_algorithm algorithm,
                  enum operation operation, uint64_t bytes, const double *start_ns,
                  double *end_ns) {
  if (schedule->config.hosts == 1) {
    memcpy(end_ns, start_ns, sizeof *end_ns);
  } else if (algorithm == SCHEDULE_TREE && operation == OPERATION_ALL_REDUCE) {
    run_tree(schedule, bytes, start_ns, end_ns);
  } else {
    run_ring(schedule, operation, bytes, start_ns, end_ns);
  }
}

static struct edge edge_make(const unsigned *host_services, unsigned from, unsigned to,
                             unsigned connection) {
  unsigned worse = host_services[from] > host_services[to] ? from : to;
  return (struct edge){ .service = host_services[worse], .connection = connection };
}

void schedule_init(struct schedule *schedule, const struct schedule_config *config,
                   const struct service *services[SCHEDULE_ALGORITHMS], unsigned service_count,
                   const unsigned *host_services) {
  unsigned hosts = config->hosts;
  size_t count = (size_t)SCHEDULE_CHANNELS * hosts;
  *schedule = (struct schedule){ .config = *config, .service_count = service_count };
  memcpy(schedule->services, services, sizeof schedule->services);
  schedule->ring = transport_memory(count * sizeof *schedule->ring);
  schedule->up = transport_memory(count * sizeof *schedule->up);
  schedule->down = transport_memory(count * sizeof *schedule->down);
  schedule->parents = transport_memory(count * sizeof *schedule->parents);
  schedule->order = transport_memory(count * sizeof *schedule->order);
  schedule->scratch =
      transport_memory((4 + SCHEDULE_SLICES * config->gpus) * hosts * sizeof *schedule->scratch);
  for (unsigned which = 0; which < 2; which++) {
    schedule->points[which] = transport_memory(service_count * TRANSPORT_CONNECTIONS_MAX *
                                               sizeof *schedule->points[which]);
  }
  for (unsigned channel = 0; channel < SCHEDULE_CHANNELS; channel++) {
    make_tree(schedule, channel);
    for (unsigned host = 0; host < hosts; host++) {
      size_t at = (size_t)channel * hosts + host;
      int parent = schedule->parents[at];
      schedule->ring[at] = edge_make(host_services, host, (host + 1) % hosts, channel);
      if (parent >= 0) {
        schedule->up[at] = edge_make(host_services, host, (unsigned)parent, channel);
        unsigned connection = hosts == 2 ? channel : SCHEDULE_CHANNELS + channel;
        schedule->down[at] = edge_make(host_services, (unsigned)parent, host, connection);
      }
    }
  }
}

void schedule_free(struct schedule *schedule) {
  free(schedule->ring);
  free(schedule->up);
  free(schedule->down);
  free(schedule->parents);
  free(schedule->order);
  free(schedule->scratch);
  free(schedule->points[0]);
  free(schedule->points[1]);
}
