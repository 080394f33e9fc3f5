/* SPDX-License-Identifier: Apache-2.0 */
/* chunks: the chunk sizes that NCCL uses by itself, learnt from its questions to getChunkSize, and
 * which other sizes are worth trying. Owns: nothing; all state is in the caller's structs. Threads:
 * any, on different structs.  Blocks: never.  Fails: cannot; what is unknown is zero, and then
 * nothing is tried.
 *
 * NCCL asks for each channel, at most three times for a call: for the first channel, for the last
 * one if there is another, and for those between, which all carry the same (v2.30.7-1
 * src/enqueue.cc:724-737). What they carry adds up to the call, which reveals the number of
 * channels. */
#ifndef TUNER_PLUGIN_CALIBRATE_CHUNKS_H
#define TUNER_PLUGIN_CALIBRATE_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "common/nccl_chunk.h"

enum {
  CHUNKS_TRIED_MAX = 3,      /* a quarter, a half, twice */
  CHUNKS_QUESTIONS_MAX = 3,  /* of one call */
  CHUNKS_LEAST_BYTES = 4096, /* smaller ones only make more messages */
};

/* One call: its bytes, and NCCL's questions so far. */
struct chunks_call {
  uint64_t bytes;
  uint64_t shares[CHUNKS_QUESTIONS_MAX]; /* bytes of a channel, in the order of the questions */
  unsigned questions;                    /* also those beyond CHUNKS_QUESTIONS_MAX */
  uint32_t chunk;                        /* NCCL's own for the channel that carries most */
  uint64_t most;                         /* what that channel carries */
};

void chunks_add(struct chunks_call *call, uint64_t share, uint64_t chunk);

/* NCCL's own channels and chunk for calls of one size in one cell. */
struct chunks_own {
  uint32_t channels; /* that are used; 0: not known */
  uint32_t chunk;
};

/* Unknown if the shares do not add up: a group of calls was asked about as one. */
struct chunks_own chunks_sum(const struct chunks_call *call);

struct chunks_site {
  enum profile_collective collective;
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
  uint64_t bytes;
  uint32_t ranks;
  struct chunks_own own;
  uint32_t
      slot; /* the largest chunk that NCCL used by itself in this cell: its buffers hold that */
};

/* A quarter and a half of NCCL's effective chunk, and twice that if its buffers are known to hold
 * it and there is enough data to fill it. Powers of two, rounded down to whole grains, so that
 * neighbouring sizes try the same chunks. Returns how many. */
size_t chunks_around(const struct chunks_site *site, uint32_t chunks[CHUNKS_TRIED_MAX]);

#endif
