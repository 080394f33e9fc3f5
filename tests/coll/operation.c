/* SPDX-License-Identifier: Apache-2.0 */
/* operation: what distinguishes one collective from another, and nothing else does. */
#include "tests/coll/operation.h"

#include <string.h>

#include "tests/coll/pattern.h"

const struct operation_info operation_infos[OPERATIONS] = {
  [OPERATION_ALL_REDUCE] = { "all_reduce", true, false, true },
  [OPERATION_ALL_GATHER] = { "all_gather", false, false, true },
  [OPERATION_REDUCE_SCATTER] = { "reduce_scatter", true, false, true },
  [OPERATION_BROADCAST] = { "broadcast", false, true, true },
  [OPERATION_REDUCE] = { "reduce", true, true, true },
  [OPERATION_SENDRECV] = { "sendrecv", false, false, false },
  [OPERATION_ALLTOALL] = { "alltoall", false, false, false },
};

const char *const operation_redop_names[PATTERN_NONE + 1] = {
  [PATTERN_SUM] = "sum", [PATTERN_PROD] = "prod", [PATTERN_MAX] = "max",
  [PATTERN_MIN] = "min", [PATTERN_AVG] = "avg",   [PATTERN_NONE] = "none",
};

int operation_find(const char *name) {
  for (int i = 0; i < OPERATIONS; i++) {
    if (!strcmp(operation_infos[i].name, name))
      return i;
  }
  return -1;
}

int operation_redop_find(const char *name) {
  for (int i = 0; i < PATTERN_NONE; i++) {
    if (!strcmp(operation_redop_names[i], name))
      return i;
  }
  return -1;
}

struct operation_counts operation_count_call(enum operation operation, size_t call,
                                             unsigned type_size, int ranks) {
  size_t all = call * (size_t)ranks;
  struct operation_counts counts = { .call = call, .send = call, .recv = call };
  switch (operation) {
  case OPERATION_ALL_GATHER:
    counts.recv = all;
    break;
  case OPERATION_REDUCE_SCATTER:
    counts.send = all;
    break;
  case OPERATION_ALLTOALL:
    counts.send = counts.recv = all;
    break;
  default:
    break;
  }
  counts.bytes = (counts.send > counts.recv ? counts.send : counts.recv) * type_size;
  return counts;
}

struct operation_counts operation_count(enum operation operation, size_t bytes, unsigned type_size,
                                        int ranks) {
  bool is_shared = operation == OPERATION_ALL_GATHER || operation == OPERATION_REDUCE_SCATTER ||
                   operation == OPERATION_ALLTOALL;
  size_t elements = bytes / type_size;
  return operation_count_call(operation, is_shared ? elements / (size_t)ranks : elements, type_size,
                              ranks);
}

double operation_bus_factor(enum operation operation, int ranks) {
  switch (operation) {
  case OPERATION_ALL_REDUCE:
    return 2.0 * (ranks - 1) / ranks;
  case OPERATION_ALL_GATHER:
  case OPERATION_REDUCE_SCATTER:
  case OPERATION_ALLTOALL:
    return (double)(ranks - 1) / ranks;
  default:
    return 1;
  }
}

size_t operation_in_place_offset(enum operation operation, const struct operation_counts *counts,
                                 int rank) {
  bool is_shared = operation == OPERATION_ALL_GATHER || operation == OPERATION_REDUCE_SCATTER;
  return is_shared ? counts->call * (size_t)rank : 0;
}

static int one_part(struct operation_part *part, int source, uint64_t place, size_t length) {
  *part = (struct operation_part){ .source = source, .place = place, .length = length };
  return 1;
}

int operation_parts(enum operation operation, const struct operation_counts *counts, int rank,
                    int ranks, int root, struct operation_part *parts) {
  uint64_t mine = (uint64_t)counts->call * (uint64_t)rank;
  switch (operation) {
  case OPERATION_ALL_REDUCE:
    return one_part(parts, PATTERN_REDUCED, 0, counts->recv);
  case OPERATION_REDUCE_SCATTER:
    return one_part(parts, PATTERN_REDUCED, mine, counts->recv);
  case OPERATION_BROADCAST:
    return one_part(parts, root, 0, counts->recv);
  case OPERATION_REDUCE: /* other ranks' buffers are not significant */
    return rank == root ? one_part(parts, PATTERN_REDUCED, 0, counts->recv) : 0;
  case OPERATION_SENDRECV:
    return one_part(parts, (rank + ranks - 1) % ranks, 0, counts->recv);
  default:
    for (int source = 0; source < ranks; source++)
      parts[source] = (struct operation_part){ .source = source,
                                               .place = operation == OPERATION_ALLTOALL ? mine : 0,
                                               .first = counts->call * (size_t)source,
                                               .length = counts->call };
    return ranks;
  }
}
