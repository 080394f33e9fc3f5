/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_table: the topology that NCCL found, and the costs it computed, as text.
 * Owns: the columns of a struct nccl_table, until nccl_table_free.  Threads: any, on different
 * structs.  Blocks: on the file.  Fails: -EINVAL for bad text, with line and what is wrong;
 * -ENOMEM; errors of the file system. After a failure the struct is empty.
 *
 * What tests/tables/collect writes, and what can be copied by hand from NCCL's log:
 *
 *   nccl 22907
 *   shape nodes=2 ppn=8 channels=16
 *   machine gpus=8 nics=8 mbps=200000 latency_us=0 links=12 near=1 cpu=amd cc=80
 * and, else the graphs are estimated (nccl_graph.h),
 *
 *   ring pattern=4 channels=8 intra=24 inter=24 inside=NVL outside=PIX same=0
 *   tree pattern=1 channels=8 intra=48 inter=24 inside=NVL outside=PIX same=0
 *   allreduce 1.2 3 131.6 131.7 ...      collective, algorithm.protocol, first size as a power of
 *                                        two, then microseconds for it, its double and so on */
#ifndef TUNER_PLUGIN_MODEL_NCCL_TABLE_H
#define TUNER_PLUGIN_MODEL_NCCL_TABLE_H

#include <stddef.h>

#include "tuner_plugin/model/nccl_graph.h"
#include "tuner_plugin/model/nccl_model.h"

enum { NCCL_TABLE_SIZES_MAX = 40 };

struct nccl_table_column {
  enum profile_collective collective;
  struct nccl_cell cell;
  int first_shift; /* first size: 1 << first_shift */
  int count;
  float us[NCCL_TABLE_SIZES_MAX];
};

struct nccl_table {
  struct nccl_machine machine; /* as far as it is known: gpus is 0 if not */
  struct nccl_topology topology;
  struct nccl_table_column *columns;
  size_t column_count;
};

/* The words after `machine`, over what `machine` holds. Returns the first that is none, or NULL. */
const char *nccl_table_parse_machine(char *words, struct nccl_machine *machine);

int nccl_table_read(const char *path, struct nccl_table *table, struct profile_error *error);
void nccl_table_free(struct nccl_table *table);

/* The bytes that NCCL counts where 2^shift were asked for: a multiple of the ranks for allgather
 * and reducescatter. */
uint64_t nccl_table_bytes(const struct nccl_topology *topology, enum profile_collective collective,
                          int shift);

#endif
