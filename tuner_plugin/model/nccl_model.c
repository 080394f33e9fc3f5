/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and bandwidth of every cell, and from them costs and choices. */
#include "tuner_plugin/model/nccl_model.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tuner_plugin/decide/costs.h"
#include "tuner_plugin/model/nccl_release.h"

/* Everything that the cells share while a model is built. */
struct builder {
  const struct nccl_topology *topology;
  struct nccl_release release;
  enum nccl_generation generation;
  int nodes, ranks;
  int scale; /* column of the limits */
  float ppn;
};

struct cell {
  enum profile_collective collective;
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
  const struct nccl_graph *graph;
};

/* -1 for 0, as the tables of 2.22 and newer show. */
static int log2_down(uint64_t n) {
  return n ? 63 - __builtin_clzll(n) : -1;
}

static bool is_shared(enum profile_collective collective) {
  return collective == PROFILE_ALLGATHER || collective == PROFILE_REDUCESCATTER;
}

static int count_steps(const struct builder *b, enum profile_collective collective) {
  if (collective == PROFILE_ALLREDUCE) {
    return 2 * (b->ranks - 1);
  }
  return is_shared(collective) ? b->ranks - 1 : b->ranks;
}

static const struct nccl_graph *graph_of(const struct nccl_topology *topology,
                                         enum profile_algorithm algorithm) {
  switch (algorithm) {
  case PROFILE_RING:
    return &topology->ring;
  case PROFILE_NVLS:
  case PROFILE_NVLS_TREE:
    return &topology->nvls;
  default:
    return &topology->tree; /* PAT, too */
  }
}

/* ---- which cells there are ---- */

static bool is_pat_there(const struct builder *b, const struct cell *cell) {
  return b->release.pat_factor > 0 && is_shared(cell->collective) &&
         cell->protocol == PROFILE_SIMPLE && b->nodes == b->ranks && b->topology->cc_min >= 60;
}

static bool is_nvls_there(const struct builder *b, const struct cell *cell) {
  bool is_tree = cell->algorithm == PROFILE_NVLS_TREE;
  if (!b->topology->has_nvls || cell->protocol != PROFILE_SIMPLE ||
      is_tree != (b->nodes > 1)) { /* NVLS between nodes needs CollNet */
    return false;
  }
  bool is_collective =
      cell->collective == PROFILE_ALLREDUCE || (!is_tree && is_shared(cell->collective));
  return is_collective && (!b->release.is_nvls_in_bus_units || cell->graph->channels >= 2);
}

/* NCCL enables LL128 only where 128-byte stores stay whole. */
static bool is_ll128_there(const struct builder *b, const struct nccl_graph *graph) {
  const struct nccl_topology *t = b->topology;
  enum nccl_path farthest = t->cc_min >= 90 ? NCCL_PATH_PXN : NCCL_PATH_PXB;
  if (graph->outside > farthest || graph->inside > NCCL_PATH_NVB) {
    return false;
  }
  if (t->cc_min != t->cc_max && !(b->release.is_mixed_ll128_from_hopper && t->cc_min >= 90)) {
    return false;
  }
  if (!b->release.is_ll128_for_listed_only) {
    return t->cc_min >= 70;
  }
  return t->cc_min == 70 || t->cc_min == 80 || t->cc_min == 90 ||
         (b->release.has_blackwell && (t->cc_min == 100 || t->cc_min == 120));
}

static bool is_there(const struct builder *b, const struct cell *cell) {
  if (cell->protocol == PROFILE_LL128 && !is_ll128_there(b, cell->graph)) {
    return false;
  }
  switch (cell->algorithm) {
  case PROFILE_RING:
    return true;
  case PROFILE_TREE:
    return cell->collective == PROFILE_ALLREDUCE;
  case PROFILE_PAT:
    return is_pat_there(b, cell);
  case PROFILE_NVLS:
  case PROFILE_NVLS_TREE:
    return is_nvls_there(b, cell);
  default:
    return false;
  }
}

/* ---- bandwidth ---- */

static float nvls_channel_gbs(const struct builder *b, const struct cell *cell) {
  const struct nccl_graph *graph = cell->graph;
  bool is_tree = cell->algorithm == PROFILE_NVLS_TREE;
  if (!b->release.is_nvls_in_bus_units) {
    if (is_tree) {
      return fminf(graph->intra_gbs, b->nodes <= 2 ? graph->inter_gbs : graph->inter_gbs / 2);
    }
    if (is_shared(cell->collective) && b->release.is_nvls_scaled_by_ranks) {
      return fminf(graph->intra_gbs * (b->ppn - 1.0f) / b->ppn, graph->inter_gbs * 0.9f);
    }
    return fminf(graph->intra_gbs, graph->inter_gbs);
  }
  float intra = graph->intra_gbs * (float)b->release.nvls_efficiency[b->generation] *
                (float)(graph->channels - 1) / (float)graph->channels;
  intra *= cell->collective == PROFILE_ALLREDUCE ? 2.0f : (b->ppn - 1) / b->ppn;
  float inter = graph->inter_gbs * (b->nodes <= 2 && is_tree ? 2 : 1);
  float limit =
      is_tree ? (float)b->release.nvls_tree_channel_gbs[b->generation][b->scale] : FLT_MAX;
  return fminf(fminf(intra, inter), limit);
}

static float ring_gbs(const struct builder *b, const struct cell *cell, float bus) {
  const struct nccl_release *r = &b->release;
  if (cell->protocol == PROFILE_LL) {
    /* Between nodes the processors decide; on one, the GPUs do. */
    bool is_amd = b->topology->cpu == NCCL_CPU_AMD || b->topology->cpu == NCCL_CPU_MIXED;
    int row = b->nodes == 1 ? (int)b->generation : is_amd ? 1 : 0;
    bool is_quarter =
        b->nodes > 1 || cell->collective == PROFILE_ALLREDUCE || cell->collective == PROFILE_REDUCE;
    double share = r->is_ring_ll_half ? 0.5 : is_quarter ? 1.0 / 4.0 : 1.0 / 3.0;
    return (float)fmin(r->ll_gbs[row][b->scale], bus * share);
  }
  if (cell->protocol == PROFILE_LL128) {
    double share = r->has_ring_ll128_penalty && b->ppn < 2 ? 0.7 : 0.92;
    return (float)fmin(bus * share,
                       cell->graph->channels * r->ring_ll128_channel_gbs[b->generation][b->scale]);
  }
  return bus;
}

static float tree_gbs(const struct builder *b, const struct cell *cell, float bus) {
  const struct nccl_release *r = &b->release;
  int channels = cell->graph->channels;
  bus = (float)fmin(bus * .92, channels * r->tree_channel_gbs[b->generation][b->scale]);
  if (cell->protocol == PROFILE_LL) {
    bool is_amd = b->topology->cpu == NCCL_CPU_AMD || b->topology->cpu == NCCL_CPU_MIXED;
    int row = b->nodes == 1 ? (int)b->generation : is_amd ? 1 : 0;
    bus = (float)fmin(bus * 1.0 / 3.8, r->ll_gbs[row][b->scale]);
  }
  if (cell->protocol == PROFILE_LL128) {
    bus = (float)fmin(bus * (b->nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                      channels * r->tree_ll128_channel_gbs[b->generation][b->scale]);
  }
  return cell->graph->is_tree ? (float)(bus * .85) : bus;
}

static float find_gbs(const struct builder *b, const struct cell *cell) {
  bool is_nvls = cell->algorithm == PROFILE_NVLS || cell->algorithm == PROFILE_NVLS_TREE;
  float channel = is_nvls         ? nvls_channel_gbs(b, cell)
                  : b->nodes <= 2 ? cell->graph->intra_gbs
                                  : cell->graph->inter_gbs;
  float bus = (float)cell->graph->channels * channel;
  if (cell->algorithm == PROFILE_RING) {
    bus = ring_gbs(b, cell, bus);
  } else if (cell->algorithm == PROFILE_TREE) {
    bus = tree_gbs(b, cell, bus);
  } else if (cell->algorithm == PROFILE_PAT) {
    bus = (float)(bus * b->release.pat_factor);
  }
  /* From what the wires carry to what the user sees. */
  bool is_kept = cell->algorithm != PROFILE_RING && is_shared(cell->collective) &&
                 b->topology->release >= 22300;
  if (is_kept) {
    return bus;
  }
  float ratio = 0.5f;
  if (cell->algorithm == PROFILE_RING || (is_nvls && b->release.is_nvls_in_bus_units)) {
    ratio = (float)(1.0 * b->ranks / count_steps(b, cell->collective));
  } else if (is_nvls) {
    ratio = (float)(5.0 / 6.0);
  }
  return bus * ratio;
}

/* ---- latency ---- */

static float net_overhead_us(const struct nccl_topology *topology) {
  if (topology->net_overhead_us >= 0) {
    return topology->net_overhead_us;
  }
  return topology->cpu == NCCL_CPU_AMD ? 2.0f : 1.0f;
}

static float ring_latency_us(const struct builder *b, const struct cell *cell, float intra_us,
                             float inter_us) {
  int steps = count_steps(b, cell->collective);
  if (cell->collective == PROFILE_BROADCAST || cell->collective == PROFILE_REDUCE) {
    enum nccl_hardware hardware = b->nodes > 1                           ? NCCL_NET
                                  : cell->graph->inside == NCCL_PATH_NVL ? NCCL_NVLINK
                                                                         : NCCL_PCI;
    bool is_tree_like = !cell->graph->has_same_channels && cell->protocol == PROFILE_SIMPLE;
    float hop_us =
        (float)
            b->release.hop_us[hardware][is_tree_like ? PROFILE_TREE : PROFILE_RING][cell->protocol];
    return cell->graph->has_same_channels ? hop_us : (float)steps * hop_us;
  }
  float overhead_us = 0;
  if (b->nodes > 1) {
    overhead_us = net_overhead_us(b->topology) * (cell->protocol == PROFILE_SIMPLE ? 3 : 1);
  }
  int inter_steps = b->nodes - 1;
  if (cell->collective == PROFILE_ALLREDUCE && b->nodes > 1) {
    inter_steps = b->release.has_wrapped_ring_steps ? 2 * b->nodes : 2 * (b->nodes - 1);
  }
  return (float)(steps - inter_steps) * fmaxf(intra_us, overhead_us) +
         (float)inter_steps * inter_us;
}

static float find_latency_us(const struct builder *b, const struct cell *cell) {
  const struct nccl_release *r = &b->release;
  enum profile_protocol protocol = cell->protocol;
  enum nccl_hardware inside = cell->graph->inside == NCCL_PATH_NVL ? NCCL_NVLINK : NCCL_PCI;
  bool is_exposed = r->has_exposed_latency && b->ranks == b->nodes;
  float base_us = (float)r->base_us[cell->algorithm][protocol];
  float intra_us = (float)r->hop_us[inside][cell->algorithm][protocol];
  float inter_us =
      (float)r->hop_us[NCCL_NET][is_exposed ? PROFILE_TREE : cell->algorithm][protocol];
  /* Simple has a flush to wait for, too. */
  inter_us += cell->graph->latency_us * (protocol == PROFILE_SIMPLE ? 2 : 1);
  int depth = log2_down((uint64_t)b->nodes);
  switch (cell->algorithm) {
  case PROFILE_RING:
    return base_us + ring_latency_us(b, cell, intra_us, inter_us);
  case PROFILE_TREE:
    return base_us + 2 * ((float)(b->ranks / b->nodes - 1) * intra_us + (float)depth * inter_us);
  case PROFILE_NVLS:
    return intra_us + (b->nodes > 1 ? inter_us : 0);
  case PROFILE_NVLS_TREE:
    return base_us + intra_us + (float)(2 * depth) * inter_us;
  case PROFILE_PAT:
    return (float)(base_us + (float)depth * (inter_us / 3.5) + b->ranks * 2.8);
  default:
    return base_us;
  }
}

/* ---- the whole ---- */

static enum nccl_generation find_generation(const struct nccl_release *release, int cc) {
  if (cc >= 100 && release->has_blackwell) {
    return NCCL_BLACKWELL;
  }
  return cc >= 90 ? NCCL_HOPPER : cc >= 80 ? NCCL_AMPERE : NCCL_VOLTA;
}

void nccl_model_build(const struct nccl_topology *topology, struct nccl_model *model) {
  memset(model, 0, sizeof *model);
  model->topology = *topology;
  struct builder b = {
    .topology = topology,
    .nodes = topology->nodes,
    .ranks = topology->nodes * topology->ppn,
    .scale = topology->nodes <= 2 ? topology->nodes - 1 : 2,
    .ppn = (float)topology->ppn,
  };
  nccl_release_get(topology->release, &b.release);
  b.generation = find_generation(&b.release, topology->cc_min);
  if (topology->cpu == NCCL_CPU_POWER) {
    b.release.hop_us[NCCL_PCI][PROFILE_TREE][PROFILE_SIMPLE] =
        b.release.hop_us[NCCL_PCI][PROFILE_RING][PROFILE_SIMPLE];
  }
  for (unsigned i = 0; i < PROFILE_COLLECTIVE_COUNT * COSTS_CELLS; i++) {
    struct cell cell = {
      .collective = (enum profile_collective)(i / COSTS_CELLS),
      .algorithm = costs_cell_algorithm(i % COSTS_CELLS),
      .protocol = costs_cell_protocol(i % COSTS_CELLS),
    };
    cell.graph = graph_of(topology, cell.algorithm);
    if (is_there(&b, &cell)) {
      model->gbs[cell.collective][cell.algorithm][cell.protocol] = find_gbs(&b, &cell);
      model->latency_us[cell.collective][cell.algorithm][cell.protocol] =
          find_latency_us(&b, &cell);
    }
  }
}

/* ---- one call ---- */

static float tree_factor(const struct nccl_model *model, struct nccl_cell cell, uint64_t bytes) {
  struct nccl_release release;
  nccl_release_get(model->topology.release, &release);
  bool is_corrected_nvls = cell.algorithm == PROFILE_NVLS_TREE &&
                           release.has_blackwell_nvls_tree_factor &&
                           model->topology.cc_min >= 100 && model->topology.cpu != NCCL_CPU_ARM &&
                           model->topology.cpu != NCCL_CPU_POWER;
  if (cell.algorithm != PROFILE_TREE && !is_corrected_nvls) {
    return 1.0f;
  }
  int step = log2_down(bytes >> 6);
  if (step < 0) {
    step = release.has_tiny_tree_factor ? 0 : NCCL_TREE_FACTOR_COUNT;
  }
  return step < NCCL_TREE_FACTOR_COUNT ? nccl_tree_factor[cell.protocol][step] : 1.0f;
}

static float find_cost(const struct nccl_model *model, enum profile_collective collective,
                       struct nccl_cell cell, uint64_t bytes) {
  const struct nccl_topology *t = &model->topology;
  float gbs = model->gbs[collective][cell.algorithm][cell.protocol];
  float latency_us = model->latency_us[collective][cell.algorithm][cell.protocol];
  if (gbs == 0) {
    return -1.0f;
  }
  if (collective == PROFILE_ALLREDUCE) {
    gbs *= tree_factor(model, cell, bytes);
  }
  uint64_t slices = (uint64_t)t->channels * (uint64_t)t->nodes * (uint64_t)t->ppn;
  if (cell.algorithm == PROFILE_RING && cell.protocol == PROFILE_SIMPLE && t->nodes > 1 &&
      collective == PROFILE_ALLREDUCE && bytes / slices >= 64) {
    latency_us = (float)(latency_us * (t->cc_min < 80 ? 1.9 : 1.4)); /* NCCL: a ring's plateau */
  }
  return latency_us + (float)bytes / (1000 * gbs);
}

void nccl_model_costs(const struct nccl_model *model, enum profile_collective collective,
                      uint64_t bytes, nccl_costs costs) {
  for (int a = 0; a < PROFILE_ALGORITHM_COUNT; a++) {
    for (int p = 0; p < PROFILE_PROTOCOL_COUNT; p++) {
      struct nccl_cell cell = { (enum profile_algorithm)a, (enum profile_protocol)p };
      costs[a][p] = find_cost(model, collective, cell, bytes);
    }
  }
}

bool nccl_model_choose(nccl_costs costs, struct nccl_cell *cell) {
  struct decide_costs table = { &costs[0][0], PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT };
  struct costs_choice choice;
  if (!costs_choose(table, &choice)) {
    return false;
  }
  *cell = (struct nccl_cell){ costs_cell_algorithm(choice.cell), costs_cell_protocol(choice.cell) };
  return true;
}

/* Threads of a block, and bytes per thread below which NCCL takes fewer channels. */
static int find_threads(const struct nccl_topology *t, struct nccl_cell cell) {
  if (cell.algorithm == PROFILE_PAT) {
    return 0;
  }
  if (cell.protocol == PROFILE_LL128) {
    return 640;
  }
  bool is_slow_ring = cell.algorithm == PROFILE_RING && cell.protocol == PROFILE_SIMPLE &&
                      t->ring.intra_gbs * (float)t->ring.channels <= 12.0f;
  return is_slow_ring ? 256 : 512;
}

int nccl_model_channels(const struct nccl_model *model, struct nccl_cell cell, uint64_t bytes) {
  const struct nccl_topology *t = &model->topology;
  if (cell.algorithm == PROFILE_NVLS || cell.algorithm == PROFILE_NVLS_TREE) {
    return t->nvls.channels;
  }
  uint64_t threshold = cell.protocol == PROFILE_SIMPLE ? 64 : 8;
  if (cell.algorithm == PROFILE_RING && cell.protocol == PROFILE_LL) {
    threshold *= (uint64_t)t->nodes * (uint64_t)t->ppn;
  }
  uint64_t wanted = (uint64_t)find_threads(t, cell) * threshold;
  int channels = t->channels;
  while (channels >= 2 && bytes < (uint64_t)channels * wanted) {
    channels--;
  }
  return channels;
}

const char *nccl_path_name(enum nccl_path path) {
  static const char *const names[NCCL_PATH_COUNT] = { "LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                      "P2C", "PXN", "PHB", "SYS", "NET" };
  return names[path];
}
