/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_release: the figures and rules of NCCL's cost model that differ from release to release.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot; a release that is not known gets
 * what the nearest known one has.
 *
 * Facts from NVIDIA/nccl, src/graph/tuning.cc and src/enqueue.cc at the tags v2.19.3-1 to
 * v2.30.7-1. A tuner of interface v5 or newer is handed the same figures (tuner_v5.h:19-36). */
#ifndef TUNER_PLUGIN_MODEL_NCCL_RELEASE_H
#define TUNER_PLUGIN_MODEL_NCCL_RELEASE_H

#include <stdbool.h>

#include "common/profile.h"

enum nccl_hardware { NCCL_NVLINK, NCCL_PCI, NCCL_NET, NCCL_HARDWARE_COUNT };
enum nccl_generation {
  NCCL_VOLTA, /* and older */
  NCCL_AMPERE,
  NCCL_HOPPER,
  NCCL_BLACKWELL,
  NCCL_GENERATION_COUNT
};
enum { NCCL_SCALE_COUNT = 3 }; /* 1 node, 2 nodes, more */

typedef double nccl_latencies[PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
typedef double nccl_limits[NCCL_GENERATION_COUNT][NCCL_SCALE_COUNT];

struct nccl_release {
  /* Microseconds and GB/s. */
  nccl_latencies base_us;
  nccl_latencies hop_us[NCCL_HARDWARE_COUNT];
  nccl_limits ll_gbs;
  nccl_limits ring_ll128_channel_gbs;
  nccl_limits tree_ll128_channel_gbs;
  nccl_limits tree_channel_gbs;
  nccl_limits nvls_tree_channel_gbs;             /* from 2.28 */
  double nvls_efficiency[NCCL_GENERATION_COUNT]; /* from 2.28 */
  double pat_factor;                             /* of the bus bandwidth; 0: no PAT */
  bool is_ring_ll_half;                /* of the bus bandwidth; else a quarter or a third */
  bool has_ring_ll128_penalty;         /* 0.7 instead of 0.92 with one rank per node */
  bool has_wrapped_ring_steps;         /* 2N steps between nodes instead of 2(N-1) in AllReduce */
  bool has_exposed_latency;            /* one rank per node: a hop costs what it costs a tree */
  bool has_tiny_tree_factor;           /* the trees' correction holds below 64 bytes, too */
  bool has_blackwell;                  /* a row of its own for it */
  bool is_ll128_for_listed_only;       /* compute capabilities by name, not from 70 up */
  bool is_mixed_ll128_from_hopper;     /* GPUs of different capability may share it */
  bool is_nvls_in_bus_units;           /* the model of 2.28 for NVLS */
  bool is_nvls_scaled_by_ranks;        /* 2.27: allgather and reducescatter count the peers only */
  bool has_blackwell_nvls_tree_factor; /* 2.29: the trees' correction, on x86 */
};

/* `release` as ncclGetVersion counts: 22809. */
void nccl_release_get(int release, struct nccl_release *out);

/* Of the trees, for 64 B, 128 B and so on: 23 steps. */
enum { NCCL_TREE_FACTOR_COUNT = 23 };
extern const float nccl_tree_factor[PROFILE_PROTOCOL_COUNT][NCCL_TREE_FACTOR_COUNT];

#endif
