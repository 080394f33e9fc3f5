/* SPDX-License-Identifier: Apache-2.0 */
/* pat: the order of steps of PAT all-gather and reduce-scatter.
 *
 * It has to agree step by step with PatRSAlgorithm and PatAGAlgorithm of src/include/collectives.h,
 * because the proxies count the same steps. How many steps the GPU runs in parallel
 * (parallelFactor) is invisible to the peers; here it is always one.
 *
 * Owns: only its own struct.  Threads: one.  Blocks: never.  Fails: cannot. */
#ifndef FAKE_CUDA_NCCL_PAT_H
#define FAKE_CUDA_NCCL_PAT_H

#include "tests/fake_cuda/nccl/block.h"

#define PAT_DIMENSIONS 32

/* One step. A dimension d stands for the peers at distance 2^d; -1 means no peer. */
struct pat_step {
  int recv_dim, send_dim;
  int step_offset;
  bool post_recv, post_send, skip, last;
  ssize_t recv_offset, send_offset; /* within the slot, in elements */
  ssize_t count;
  ssize_t in, out; /* in the user buffers, in elements */
};

struct pat_state {
  bool is_reduce_scatter;
  ssize_t offset, end, total, chunk, count;
  int rank, n_ranks;
  int n_ranks_pow2;      /* n_ranks rounded up to a power of two */
  int post_frequency;    /* steps that share one slot */
  int aggregate;         /* steps that are aggregated */
  int aggregate_delta;   /* distance between aggregated steps */
  int dimensions;        /* log2 of aggregate_delta */
  int index, last_index; /* within the aggregated steps */
  int send_skip, step_offset;
  int position; /* the step that is being aggregated */
  int scale, phase;
  /* all-gather only: enumeration of the positions */
  int value;
  int bit_count[PAT_DIMENSIONS], bit_zeros[PAT_DIMENSIONS];
};

/* Starts the schedule of one channel's part, which must not be empty; size is an element's. */
void pat_schedule_begin(struct pat_state *s, struct part part, const struct block *b, int size,
                        bool is_reduce_scatter);
/* The next step; the schedule has ended after the one that is marked last. */
void pat_schedule_next(struct pat_state *s, struct pat_step *p);

#endif
