/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_graph: an estimate of what NCCL's search finds on a machine, for use without its log.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot.
 *
 * An estimate: NCCL searches the real topology (src/graph/search.cc), this follows what the search
 * gave on the machines of tests/tables/collect. */
#ifndef TUNER_PLUGIN_MODEL_NCCL_GRAPH_H
#define TUNER_PLUGIN_MODEL_NCCL_GRAPH_H

#include "tuner_plugin/model/nccl_model.h"

/* One of several equal hosts. */
struct nccl_machine {
  int gpus;
  int nics;
  int mbps;  /* of one NIC, as the net plugin reports it */
  int links; /* NVLinks of each GPU; 0: PCIe alone */
  int near;  /* 1: each NIC shares a PCIe switch with GPUs, and the transport uses it (GPUDirect) */
  int cc;    /* compute capability: 80, 90 */
  float latency_us; /* of the NIC, as the net plugin reports it */
  enum nccl_cpu cpu;
};

/* Fills everything in `topology` but the release, nodes and ppn, which are set. */
void nccl_graph_estimate(const struct nccl_machine *machine, struct nccl_topology *topology);

/* "gpus=8 nics=8 mbps=200000 latency_us=0 links=12 near=1 cpu=amd cc=80", or some of these words,
 * over what `machine` holds. Returns the first that is none, or NULL. */
const char *nccl_graph_parse_machine(char *words, struct nccl_machine *machine);

#endif
