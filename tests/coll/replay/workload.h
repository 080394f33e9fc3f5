/* SPDX-License-Identifier: Apache-2.0 */
/* workload: what one training step computes and exchanges, read from a file of lines
 * (tests/workloads/README.md).
 * Owns: struct workload owns its items, until workload_free.  Threads: any, on different structs.
 * Blocks: while the file is read.  Fails: -EINVAL or the errors of open, with a message that names
 * the file, the line and what is accepted; the workload is then empty.
 *
 * A rank works on the lines that are its own from first to last: computing takes its time;
 * communication is started, and runs beside it when that of its group before it is done. The step
 * ends when everything is done. No CUDA, no NCCL. */
#ifndef COLL_REPLAY_WORKLOAD_H
#define COLL_REPLAY_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/coll/operation.h"

enum {
  WORKLOAD_SPLIT_MAX = 16,
  WORKLOAD_ERROR_MAX = 512,
  WORKLOAD_SCALE_MAX = 1000, /* of times and of elements */
};

enum workload_kind {
  WORKLOAD_COMPUTE,
  WORKLOAD_COLLECTIVE,
  WORKLOAD_EXCHANGE, /* with another stage */
  WORKLOAD_WAIT,
};

/* Whom a rank meets: all; the other stages of its copy of the model; the same stage of all copies.
 * Ranks of one copy follow each other. */
enum workload_group { WORKLOAD_ALL, WORKLOAD_STAGES, WORKLOAD_COPIES, WORKLOAD_GROUPS };
extern const char *const workload_group_names[WORKLOAD_GROUPS];

struct workload_item {
  enum workload_kind kind;
  int line;
  int stage;       /* whose it is; -1: all ranks' */
  unsigned number; /* of communication: 1, 2, 3, ...; of a wait: of what it waits for */
  double us;       /* WORKLOAD_COMPUTE */
  enum operation operation;
  enum element_type type;
  enum workload_group group;
  uint64_t elements; /* of the larger buffer; all ranks' where they share it out */
  /* An uneven alltoall: what each rank sends to parts of its group, or receives from them. Runs of
   * equal length belong to one rank: 8 counts are those of 8 ranks, or of 4 with two each. */
  unsigned count;
  bool is_received;
  uint64_t counts[WORKLOAD_SPLIT_MAX];
  int peer; /* WORKLOAD_EXCHANGE: a stage */
  uint64_t sent, received;
};

struct workload {
  char name[64];
  int batch;  /* samples of one rank in one step */
  int stages; /* of the model; the number of ranks is a multiple */
  struct workload_item *items;
  size_t count;
  unsigned numbers; /* of communication */
};

/* Times and elements are multiplied by these scales; of elements at least one is left. `argument`:
 * a path, or the name of a file in tests/workloads, which is found from where the program is. */
int workload_read(struct workload *workload, const char *argument, double compute_scale,
                  double bytes_scale, char error[WORKLOAD_ERROR_MAX]);
/* The same of a text; `name` stands for the file in messages. */
int workload_parse(struct workload *workload, const char *text, const char *name,
                   double compute_scale, double bytes_scale, char error[WORKLOAD_ERROR_MAX]);
void workload_free(struct workload *workload);

/* Whether so many ranks can do it. */
int workload_check(const struct workload *workload, int ranks, char error[WORKLOAD_ERROR_MAX]);

static inline bool workload_communicates(const struct workload_item *item) {
  return item->kind == WORKLOAD_COLLECTIVE || item->kind == WORKLOAD_EXCHANGE;
}
static inline bool workload_applies(const struct workload *workload,
                                    const struct workload_item *item, int rank) {
  return item->stage < 0 || rank % workload->stages == item->stage;
}

/* A rank in a group: of how many, its place, and the number of the group among those of its kind.
 */
struct workload_place {
  int ranks, rank, color;
};
struct workload_place workload_place(const struct workload *workload, enum workload_group group,
                                     int ranks, int rank);

/* Elements of an uneven alltoall between a rank and that with the place `part` of `parts`. */
uint64_t workload_part(const struct workload_item *item, int part, int parts);

/* Counts and bytes of communication of `ranks`. Of an uneven alltoall, send and recv are those of
 * the rank that has most, and bytes what a rank sends on average. */
struct operation_counts workload_counts(const struct workload *workload,
                                        const struct workload_item *item, int ranks);

struct workload_sum {
  uint64_t buffer_bytes; /* the most that communication of any rank needs in a buffer */
  unsigned collectives;  /* and exchanges, of rank 0 */
  uint64_t bytes;        /* of rank 0: sizes as nccl-tests counts them */
};
struct workload_sum workload_sum(const struct workload *workload, int ranks);

#endif
