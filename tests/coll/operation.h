/* SPDX-License-Identifier: Apache-2.0 */
/* operation: the seven collective operations: their counts, bandwidth factors, results, and calls.
 * Owns: nothing.  Threads: any.
 * Blocks: operation_run, if NCCL does.  Fails: operation_run ends the process with a message.
 *
 * Sizes, counts and factors are those of nccl-tests (its doc/PERFORMANCE.md): the size of an
 * operation is that of its larger buffer, "count" is the argument of the NCCL call. Unlike there,
 * counts per rank are not rounded to 16 bytes, so that odd ones are exercised too. */
#ifndef COLL_OPERATION_H
#define COLL_OPERATION_H

#include <stdbool.h>

#include "tests/coll/libs.h"
#include "tests/coll/pattern.h"

enum operation {
  OPERATION_ALL_REDUCE,
  OPERATION_ALL_GATHER,
  OPERATION_REDUCE_SCATTER,
  OPERATION_BROADCAST,
  OPERATION_REDUCE,
  OPERATION_SENDRECV,
  OPERATION_ALLTOALL,
  OPERATIONS
};

struct operation_info {
  const char *name;
  bool has_redop, has_root, has_in_place;
  bool sends_all, receives_all; /* buffers of a count for each rank */
  int passes;                   /* of all ranks' data over a link; 0: of one's */
};

extern const struct operation_info operation_infos[OPERATIONS];

int operation_find(const char *name); /* or -1 */

/* The redops' and NCCL's names for them. */
extern const char *const operation_redop_names[PATTERN_NONE + 1];
int operation_redop_find(const char *name); /* or -1 */

/* Element counts for a total size. */
struct operation_counts {
  size_t call;       /* what NCCL is given */
  size_t send, recv; /* elements in the buffers of one rank */
  size_t bytes;      /* the size that is reported */
};

struct operation_counts operation_count(enum operation operation, size_t bytes, unsigned type_size,
                                        int ranks);

/* The same for a count that NCCL is given. */
struct operation_counts operation_count_call(enum operation operation, size_t call,
                                             unsigned type_size, int ranks);

/* busbw = algbw times this. */
double operation_bus_factor(enum operation operation, int ranks);

/* In place, where in the receiving buffer a rank's send buffer (or, for reduce_scatter, its result)
 * begins, in elements. */
size_t operation_in_place_offset(enum operation operation, const struct operation_counts *counts,
                                 int rank);

/* Which elements of the result are defined, and where they come from. */
struct operation_part {
  int source;           /* a rank, or PATTERN_REDUCED */
  uint64_t place;       /* of the first element in what the source sent */
  size_t first, length; /* elements of the receive buffer */
};

/* Parts of `rank`'s result: at most `ranks` of them; the number is returned. */
int operation_parts(enum operation operation, const struct operation_counts *counts, int rank,
                    int ranks, int root, struct operation_part *parts);

/* ---- calls ---- */

/* What a rank sends to another one, or receives from it, within a group of such calls. */
struct operation_transfer {
  bool is_send;
  int peer;
  size_t count, first; /* elements, and where the first one is in the buffer */
  uint64_t place;      /* for checks: of the first one in the pattern that the sender fills in */
};

/* An operation on data of some size and type: the same at all ranks, but for transfers. */
struct operation_case {
  enum operation operation;
  enum element_type type;
  enum pattern_redop redop; /* PATTERN_NONE where the operation has none */
  int root;                 /* -1 where the operation has none */
  struct operation_counts counts;
  /* Of sendrecv and alltoall, instead of `counts.call`: what this rank does. NULL: all the same. */
  const struct operation_transfer *transfers;
  size_t transfer_count;
};

/* Where one rank does it. */
struct operation_rank {
  int rank, ranks;
  const void *send;
  void *recv;
  ncclComm_t comm;
  cudaStream_t stream;
};

void operation_run(const struct operation_case *operation_case, const struct operation_rank *at);

#endif
