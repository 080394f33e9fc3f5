/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_chunk: the bytes that NCCL moves at a time, as its tuner interface v6 counts them.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_NCCL_CHUNK_H
#define COMMON_NCCL_CHUNK_H

#include <stdint.h>

#include "common/profile.h"

/* NCCL 2.30.3, the first release whose tuner interface has getChunkSize. */
enum { NCCL_CHUNK_VERSION = 23003 };

/* What rows and plans may ask for; NCCL bounds it by its buffers (v2.30.7-1 src/enqueue.cc:2308).
 */
enum { NCCL_CHUNK_MIN = 512, NCCL_CHUNK_MAX = 16 << 20 };

/* Whole grains of the protocol, as NCCL rounds (src/device.h:328 there); less than one would be
 * none, with which NCCL divides: 0 then, which leaves the chunk to NCCL. */
static inline uint32_t nccl_chunk_round(uint32_t chunk, enum profile_protocol protocol) {
  static const uint32_t grains[PROFILE_PROTOCOL_COUNT] = { 16, 1920, 512 };
  return chunk / grains[protocol] * grains[protocol];
}

#endif
