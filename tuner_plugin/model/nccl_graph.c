/* SPDX-License-Identifier: Apache-2.0 */
/* The highest bandwidth that NICs, PCIe and NVLink allow, in NCCL's steps. */
#include "tuner_plugin/model/nccl_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantity.h"

/* The speeds that NCCL tries for a channel between nodes, GB/s (src/graph/search.cc:1051-1066 at
 * v2.30.7-1): up to Ampere, Hopper, Blackwell. */
static const float speeds_ampere[] = { 48.0f, 30.0f, 28.0f, 24.0f, 20.0f, 18.0f, 15.0f,
                                       12.0f, 10.0f, 9.0f,  7.0f,  6.0f,  5.0f,  4.0f,
                                       3.0f,  2.4f,  1.2f,  0.24f, 0.12f, 0 };
static const float speeds_hopper[] = { 48.0f, 45.0f, 42.0f, 40.0f, 30.0f, 24.0f,
                                       22.0f, 20.0f, 17.5f, 15.0f, 12.0f, 6.0f,
                                       3.0f,  2.4f,  1.2f,  0.24f, 0.12f, 0 };
static const float speeds_blackwell[] = { 96.0f, 86.0f, 80.0f, 48.0f, 45.1f, 42.0f, 40.0f,
                                          30.0f, 24.0f, 22.0f, 20.0f, 17.5f, 15.0f, 12.0f,
                                          6.0f,  3.0f,  2.4f,  1.2f,  0.24f, 0.12f, 0 };

/* PCIe 4 x16 as NCCL counts it, from a GPU to a NIC on its switch, through the processor, and
 * between GPUs through the processors. */
static const float switch_gbs = 24.0f, processor_gbs = 20.0f, gpus_gbs = 12.0f, sockets_gbs = 10.0f,
                   nvlink_gbs = 20.0f;

static float round_down(int cc, float gbs) {
  const float *speed = cc >= 100 ? speeds_blackwell : cc >= 90 ? speeds_hopper : speeds_ampere;
  while (speed[0] > gbs && speed[1] > 0) {
    speed++;
  }
  return *speed;
}

/* NICs that this node's ranks do not share. */
static int count_nics(const struct nccl_machine *m, int ppn) {
  bool is_alone = ppn == 1 && !m->near && m->nics > 1;
  int nics = is_alone ? m->nics / 2 : m->nics * ppn / m->gpus; /* alone: those of its socket */
  return nics > 1 ? nics : 1;
}

static enum nccl_path find_inside(const struct nccl_machine *m, int ppn) {
  if (ppn == 1) {
    return NCCL_PATH_LOC;
  }
  if (m->links > 0) {
    return NCCL_PATH_NVL;
  }
  return ppn <= 2 ? NCCL_PATH_PIX : ppn > m->gpus / 2 ? NCCL_PATH_SYS : NCCL_PATH_PHB;
}

static struct nccl_graph estimate_ring(const struct nccl_machine *m, int ppn) {
  struct nccl_graph ring = {
    .inside = find_inside(m, ppn),
    .outside = m->near ? NCCL_PATH_PIX : NCCL_PATH_PHB,
    .latency_us = m->latency_us,
  };
  if (ring.inside > ring.outside) {
    ring.outside = ring.inside; /* some GPU is as far from the NIC */
  }
  float all_gbs = m->near ? switch_gbs * (float)ppn : processor_gbs * (float)((ppn + 1) / 2);
  float one_gbs = (float)m->mbps / 8000.0f;
  if (ppn > 1 && m->links == 0) {
    one_gbs = fminf(one_gbs, ring.inside == NCCL_PATH_SYS ? sockets_gbs : gpus_gbs);
  }
  int nics = count_nics(m, ppn);
  for (int channels = 1; channels <= nics; channels++) {
    float gbs = round_down(m->cc, fminf(one_gbs, all_gbs / (float)channels));
    if (gbs * (float)channels > ring.intra_gbs * (float)ring.channels) {
      ring.channels = channels;
      ring.intra_gbs = ring.inter_gbs = gbs;
    }
  }
  ring.has_same_channels = ring.channels == 1 || ppn == 1;
  return ring;
}

void nccl_graph_estimate(const struct nccl_machine *machine, struct nccl_topology *topology) {
  topology->cc_min = topology->cc_max = machine->cc;
  topology->cpu = machine->cpu;
  topology->net_overhead_us = -1;
  topology->ring = estimate_ring(machine, topology->ppn);
  topology->tree = topology->ring;
  topology->tree.is_tree = topology->ppn == 1;
  /* A tree's rank sends each byte up and down, so NVLink, or the NIC alone, sees twice as much. */
  float tree_gbs = 2 * topology->ring.intra_gbs;
  if (topology->ppn > 1 && machine->links > 0) {
    float links_gbs = nvlink_gbs * (float)machine->links / (float)topology->ring.channels;
    tree_gbs = fminf(tree_gbs, links_gbs);
  }
  topology->tree.intra_gbs = tree_gbs;
  topology->nvls = (struct nccl_graph){ 0 };
  topology->has_nvls = false;
  topology->channels = 2 * topology->ring.channels; /* NCCL uses each graph's channels twice */
}

static bool take_number(const char *value, int *number) {
  int64_t wide;
  bool is_good = quantity_parse_int(value, &wide) == 0 && wide >= 0 && wide <= 1000000;
  *number = is_good ? (int)wide : *number;
  return is_good;
}

static bool take_fact(const char *key, const char *value, struct nccl_machine *machine) {
  const struct {
    const char *key;
    int *number;
  } numbers[] = { { "gpus", &machine->gpus }, { "nics", &machine->nics },
                  { "mbps", &machine->mbps }, { "links", &machine->links },
                  { "near", &machine->near }, { "cc", &machine->cc } };
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (strcmp(key, numbers[i].key) == 0) {
      return take_number(value, numbers[i].number);
    }
  }
  if (strcmp(key, "cpu") == 0) {
    int place = quantity_find_word("intel|amd|mixed|arm|power", value);
    machine->cpu = place >= 0 ? (enum nccl_cpu)place : machine->cpu;
    return place >= 0;
  }
  char *end;
  machine->latency_us = strtof(value, &end);
  return strcmp(key, "latency_us") == 0 && *end == '\0' && machine->latency_us >= 0;
}

const char *nccl_graph_parse_machine(char *words, struct nccl_machine *machine) {
  char *rest, key[16], value[32];
  for (char *word = strtok_r(words, " ,\n", &rest); word; word = strtok_r(NULL, " ,\n", &rest)) {
    if (sscanf(word, "%15[^=]=%31s", key, value) != 2 || !take_fact(key, value, machine)) {
      return word;
    }
  }
  return NULL;
}
