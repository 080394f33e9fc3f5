/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model: predicts NCCL's cost table, the cell it chooses and its number of channels.
 * Owns: nothing; all state is in the caller's structs.  Threads: any.
 * Blocks: never.  Fails: cannot; without a usable cell nothing is chosen.
 *
 * Arithmetic is NCCL's own, in the same float and double, so that ties fall the same way. Left out,
 * as clouds do not have it: CollNet, NVLink between hosts. Facts from NVIDIA/nccl at the tags of
 * every release: src/graph/tuning.cc, and the choice in src/enqueue.cc (2038-2110 at v2.30.7-1). */
#ifndef TUNER_PLUGIN_MODEL_NCCL_MODEL_H
#define TUNER_PLUGIN_MODEL_NCCL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"

/* Mixed: the hosts differ; NCCL counts it as AMD. */
enum nccl_cpu { NCCL_CPU_INTEL, NCCL_CPU_AMD, NCCL_CPU_MIXED, NCCL_CPU_ARM, NCCL_CPU_POWER };

/* How far apart two devices are, nearest first. */
enum nccl_path {
  NCCL_PATH_LOC,
  NCCL_PATH_NVL,
  NCCL_PATH_NVB,
  NCCL_PATH_C2C,
  NCCL_PATH_PIX,
  NCCL_PATH_PXB,
  NCCL_PATH_P2C,
  NCCL_PATH_PXN,
  NCCL_PATH_PHB,
  NCCL_PATH_SYS,
  NCCL_PATH_NET,
  NCCL_PATH_COUNT
};

/* What NCCL's search found: the line "Pattern ..., nChannels ..., bw A/B, type C/D" of its log with
 * NCCL_DEBUG_SUBSYS=GRAPH. */
struct nccl_graph {
  int channels;
  float intra_gbs, inter_gbs;     /* of one channel, inside of a node and between nodes */
  enum nccl_path inside, outside; /* longest path between GPUs, and from a GPU to its NIC */
  float latency_us;               /* of the NIC, as the net plugin reports it */
  bool is_tree;                   /* pattern 3: a tree that is neither balanced nor split */
  bool has_same_channels;
};

struct nccl_topology {
  int release; /* as ncclGetVersion counts: 22809 */
  int nodes;
  int ppn;            /* ranks per node; NCCL does not model uneven ones either */
  int cc_min, cc_max; /* compute capability: 80, 90 */
  enum nccl_cpu cpu;
  int channels;          /* of the communicator: the line "N coll channels" of the log */
  bool has_nvls;         /* NVLink SHARP, from Hopper on */
  float net_overhead_us; /* NCCL_NET_OVERHEAD; below 0: NCCL's own */
  struct nccl_graph ring, tree, nvls;
};

struct nccl_model {
  struct nccl_topology topology;
  float latency_us[PROFILE_COLLECTIVE_COUNT][PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
  float gbs[PROFILE_COLLECTIVE_COUNT][PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
};

/* A cell that is negative is not available. */
typedef float nccl_costs[PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];

struct nccl_cell {
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
};

/* `topology` has at least two ranks. */
void nccl_model_build(const struct nccl_topology *topology, struct nccl_model *model);

/* The table that a tuner is handed for one call of `bytes`, counted as NCCL does for its tuner. */
void nccl_model_costs(const struct nccl_model *model, enum profile_collective collective,
                      uint64_t bytes, nccl_costs costs);

/* False if no cell is available. */
bool nccl_model_choose(nccl_costs costs, struct nccl_cell *cell);

/* Most channels that NCCL uses for the call. */
int nccl_model_channels(const struct nccl_model *model, struct nccl_cell cell, uint64_t bytes);

/* A word as NCCL's log has it: "PHB". */
const char *nccl_path_name(enum nccl_path path);

#endif
