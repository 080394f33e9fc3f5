/* SPDX-License-Identifier: Apache-2.0 */
/* extrapolate: rows for a number of nodes, derived from rows measured on other numbers of nodes.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot; in doubt there is no row.
 *
 * The time on N' nodes is the time measured on N nodes, multiplied by the ratio of the model's
 * times for N' and N. That is done twice, for equal bytes and for equal bytes per rank, and the
 * smaller gain of the two counts. Limits: at most twice or half the measured number of nodes, the
 * same ranks per node, and every measured neighbour must agree. Two nodes are a special case that
 * is never extrapolated from or to: rings and trees have no third peer there, and NCCL's channels
 * differ. The arithmetic is + - * / of doubles and integers, the same on all hosts that run this
 * binary; no library function, whose last bit may depend on the processor. */
#ifndef TUNER_PLUGIN_DECIDE_EXTRAPOLATE_H
#define TUNER_PLUGIN_DECIDE_EXTRAPOLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/profile.h"

/* Microseconds of one call. Between nodes a ring makes N-1 steps (AllReduce twice as many), trees
 * and PAT as many as the depth of a tree over the nodes; all other steps are inside of nodes, for
 * PAT one for each rank. */
double extrapolate_model_us(const struct profile_model *model, uint64_t nodes, uint64_t ppn,
                            uint64_t bytes);

/* Iterates over all sizes, ascending. */
struct extrapolate_walk {
  const struct profile *profile;
  /* To extrapolate from: the nearest with fewer and the nearest with more nodes; NULL: none. */
  const struct profile_table *tables[2];
  uint32_t nodes;
  uint64_t next;     /* where to continue */
  size_t cursors[4]; /* a row for each table and each way to compare sizes */
  bool is_over;
};
struct extrapolate_walk extrapolate_begin(const struct profile *profile,
                                          enum profile_collective collective, uint32_t nodes,
                                          uint32_t ppn);

/* The next range that has a row, from *bytes_lo to the row's end. False at the end. */
bool extrapolate_next(struct extrapolate_walk *walk, uint64_t *bytes_lo, struct profile_row *row);

#endif
