/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: what rows measured on some numbers of nodes say about another.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot; unsure means no row.
 *
 * A time on N' nodes is a measured one on N times the ratio of the model's two, for as many bytes
 * and, again, for as many bytes per rank; the worse gain of the two counts. Never further than
 * twice or half of what was measured, never to other ranks per node, and only where every measured
 * neighbour agrees. Two nodes are a case of their own, nothing is carried from or to them: rings
 * and trees have no third peer there, and NCCL's channels differ. The arithmetic is + - * / of
 * doubles and integers, the same on all hosts that run this binary; no library function, whose last
 * bit may depend on the processor. */
#ifndef TUNER_PLUGIN_DECIDE_EXTRAPOLATE_H
#define TUNER_PLUGIN_DECIDE_EXTRAPOLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/profile.h"

/* Microseconds of one call. Between nodes a ring makes N-1 steps, AllReduce twice as many, trees
 * and PAT as many as the depth of a tree over the nodes; inside of nodes the rest, for PAT one for
 * each rank. */
double extrapolate_model_us(const struct profile_model *model, uint64_t nodes, uint64_t ppn,
                            uint64_t bytes);

/* The tables that may speak for `nodes`: the nearest with fewer and the nearest with more, in this
 * order; NULL where there is none. */
struct extrapolate_sources {
  const struct profile_table *tables[2];
};
struct extrapolate_sources extrapolate_find_sources(const struct profile *profile,
                                                    enum profile_collective collective,
                                                    uint32_t nodes, uint32_t ppn);

/* Walks over all sizes, ascending: the first range at or after *bytes_lo in which a row holds.
 * Returns false at the end. */
struct extrapolate_walk {
  const struct profile *profile;
  struct extrapolate_sources sources;
  uint32_t nodes;
  uint64_t next;     /* 0 at first: where the walk goes on */
  size_t cursors[4]; /* 0 at first: a row for each table and each way to compare sizes */
  bool is_over;
};
bool extrapolate_next(struct extrapolate_walk *walk, uint64_t *bytes_lo, struct profile_row *row);

#endif
