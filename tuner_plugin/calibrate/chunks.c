/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the shares of channels, and halves and doubles chunks. */
#include "tuner_plugin/calibrate/chunks.h"

#include <stdbool.h>

void chunks_add(struct chunks_call *call, uint64_t share, uint64_t chunk) {
  if (call->questions < CHUNKS_QUESTIONS_MAX) {
    call->shares[call->questions] = share;
  }
  call->questions++;
  if (share > call->most && chunk <= UINT32_MAX) {
    call->most = share;
    call->chunk = (uint32_t)chunk;
  }
}

struct chunks_own chunks_sum(const struct chunks_call *call) {
  static const struct chunks_own unknown = { 0, 0 };
  uint64_t left = call->bytes;
  if (call->questions == 0 || call->questions > CHUNKS_QUESTIONS_MAX || call->chunk == 0) {
    return unknown;
  }
  for (unsigned i = 0; i < call->questions; i++) {
    if (call->shares[i] == 0 || call->shares[i] > left) {
      return unknown;
    }
    left -= call->shares[i];
  }
  uint64_t channels = call->questions;
  if (call->questions == CHUNKS_QUESTIONS_MAX) { /* the last one stands for several */
    uint64_t middle = call->shares[CHUNKS_QUESTIONS_MAX - 1];
    channels += left / middle;
    left %= middle;
  }
  if (left > 0 || channels > PROFILE_CHANNELS_MAX) {
    return unknown;
  }
  return (struct chunks_own){ (uint32_t)channels, call->chunk };
}

/* The number of parts of each turn of a channel: a ring passes one part for every rank. */
static uint64_t count_parts(const struct chunks_site *site) {
  bool is_ring = site->algorithm == PROFILE_RING && site->collective != PROFILE_BROADCAST &&
                 site->collective != PROFILE_REDUCE;
  return is_ring && site->ranks > 0 ? site->ranks : 1;
}

static uint32_t round_down(uint64_t chunk, enum profile_protocol protocol) {
  uint32_t power = 1;
  while (power <= chunk / 2 && power <= NCCL_CHUNK_MAX / 2) {
    power *= 2;
  }
  return nccl_chunk_round(power, protocol);
}

size_t chunks_around(const struct chunks_site *site, uint32_t chunks[CHUNKS_TRIED_MAX]) {
  if (site->own.channels == 0 || site->own.chunk == 0) {
    return 0;
  }
  /* NCCL makes no piece larger than the data: the effective chunk may be smaller. */
  uint64_t pieces = site->own.channels * count_parts(site);
  uint64_t each = site->bytes / pieces + (site->bytes % pieces != 0);
  uint64_t base = each < site->own.chunk ? each : site->own.chunk;
  uint64_t twice = (uint64_t)site->own.chunk * 2;
  uint64_t wanted[CHUNKS_TRIED_MAX] = { base / 4, base / 2, 0 };
  if (each > site->own.chunk && twice <= site->slot) {
    wanted[2] = twice;
  }
  size_t count = 0;
  for (int i = 0; i < CHUNKS_TRIED_MAX; i++) {
    uint32_t chunk = wanted[i] < CHUNKS_LEAST_BYTES ? 0 : round_down(wanted[i], site->protocol);
    if (chunk >= NCCL_CHUNK_MIN && chunk != site->own.chunk) {
      chunks[count++] = chunk;
    }
  }
  return count;
}
