/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection's chunks were like. One that stops being so is noticed by what coding gives,
 * one that could be compressed better, or at all, by a guess from time to time. */
#include "net_plugin/codec/codec.h"

enum { SHARE = 1024 };

static uint32_t share_of(const struct codec_result *result) {
  return result->bytes == 0 ? SHARE
                            : (uint32_t)((uint64_t)result->bytes * SHARE / result->chunk_bytes);
}

int codec_memory_choose(struct codec_memory *memory) {
  if (memory->is_guessing) {
    return memory->width;
  }
  if (memory->until_guess == 0) {
    memory->is_guessing = true;
    return CODEC_GUESS;
  }
  memory->until_guess--;
  return memory->width;
}

static void note_guess(struct codec_memory *memory, const struct codec_result *result) {
  memory->is_guessing = false;
  if (result->width == CODEC_RAW && memory->width != CODEC_RAW && ++memory->misses < CODEC_MISSES) {
    return; /* the next one guesses, too */
  }
  memory->misses = 0;
  bool is_same = result->width == memory->width && memory->interval > 0;
  uint32_t twice = memory->interval * 2;
  memory->interval = !is_same                      ? CODEC_FIRST_INTERVAL
                     : twice < CODEC_LAST_INTERVAL ? twice
                                                   : CODEC_LAST_INTERVAL;
  memory->until_guess = memory->interval;
  memory->width = result->width;
  memory->usual = share_of(result);
}

void codec_memory_note(struct codec_memory *memory, const struct codec_result *result) {
  if (result->is_guess) {
    note_guess(memory, result);
    return;
  }
  if (result->width != memory->width || memory->is_guessing) {
    return; /* chosen before the last guess, or the next is in progress */
  }
  uint32_t share = share_of(result);
  if (share <= memory->usual + memory->usual / CODEC_USUAL_PART) {
    memory->usual = (memory->usual * (CODEC_USUAL_CHUNKS - 1) + share) / CODEC_USUAL_CHUNKS;
    memory->misses = 0;
  } else if (++memory->misses >= CODEC_MISSES) {
    memory->misses = 0;
    memory->until_guess = 0;
  }
}
