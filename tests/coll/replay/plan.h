/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what the ranks do in one step of a workload, as a list of items in order. PURE.
 * Owns: nothing; the caller has the memory.  Threads: any.
 * Blocks: never.  Fails: -EINVAL, with a message: groups, roots and peers that such ranks do
 * not have. Whether ranks would wait for each other forever: deadlock.h.
 *
 * The list is the same for all ranks, but a rank passes over items that are not its own
 * (plan_applies). A compute stream works on it from the first item to the last: PLAN_COMPUTE takes
 * its time; communication is started, and runs beside it when that of its group before it is done;
 * PLAN_WAIT waits for one. The step ends when everything is done.
 *
 *   ddp      gradients in reverse order of registration fill buckets, closed when their limit is
 *            reached; a bucket's AllReduce starts after the backward time of the layer that closed
 *            it; the optimizer waits for all
 *   fsdp     AllGather of a layer, before its forward and again before its backward, starts one
 *            layer ahead; ReduceScatter after its backward; shares are padded to equal size
 *   zero2    as ddp, but each rank gets the sum of its share by a ReduceScatter, and the parameters
 *            are gathered when the optimizer has changed them
 *   tensor   AllReduce of a layer's activations, after its forward and after its backward, each of
 *            which is waited for
 *   events   as listed; the optimizer waits for all */
#ifndef COLL_REPLAY_PLAN_H
#define COLL_REPLAY_PLAN_H

#include "tests/coll/replay/workload.h"

#define PLAN_SCALE_MAX 1000.0 /* of either scale; both are above 0 */

struct plan_settings {
  int ranks;
  double compute_scale;  /* times are multiplied by it */
  double bytes_scale;    /* likewise elements, at least 1 is left, and limits of buckets */
  uint64_t bucket_bytes; /* before it is scaled; 0: as the workload says */
};

/* Writes at most `capacity` items and returns how many there are, so that a first call with 0 tells
 * how many to make room for; or -EINVAL. `error` has room for WORKLOAD_ERROR_MAX. */
int64_t plan_make(const struct workload *workload, const struct plan_settings *settings,
                  struct plan_item *items, size_t capacity, char *error);

/* The group of a rank: its number of ranks, its place there, and the number (from 0) of the group
 * among those of its name. */
struct plan_group {
  int ranks, rank, color;
};
struct plan_group plan_group_of(const struct workload *workload, int group, int ranks, int rank);

/* Whether a rank of the whole run does what the item says. */
bool plan_applies(const struct workload *workload, const struct plan_item *item, int ranks,
                  int rank);

/* A count of elements times a scale, rounded; at least one is left of what was there. */
uint64_t plan_scaled(uint64_t count, double scale);

/* Elements of an uneven alltoall between a rank and that with the place `part` of `parts`. */
uint64_t plan_part(const struct plan_collective *collective, int part, int parts);

/* Counts and bytes of an item's communication; ranks of the whole run. Of an uneven alltoall, send
 * and recv are those of the rank that has most, and bytes what a rank sends on average. */
struct operation_counts plan_counts(const struct workload *workload,
                                    const struct plan_collective *collective, int ranks);

struct plan_sum {
  uint32_t numbers;      /* of communication of all ranks: the last item's */
  uint64_t buffer_bytes; /* the most that one of them needs in a buffer */
  /* Of one rank: */
  uint32_t collectives; /* and exchanges */
  uint64_t bytes;       /* sizes as nccl-tests counts them; all sends and receives */
  double compute_us;
};
struct plan_sum plan_sum(const struct workload *workload, const struct plan_item *items,
                         size_t count, int ranks, int rank);

/* An item as one line, without its end: see docs/workloads.md. */
enum { PLAN_TEXT_MAX = 256 + WORKLOAD_SPLIT_MAX * 12 }; /* 12: 2^36 in digits, and a comma */
const char *plan_text(const struct workload *workload, const struct plan_item *item, int ranks,
                      char text[PLAN_TEXT_MAX]);

#endif
