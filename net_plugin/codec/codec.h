/* SPDX-License-Identifier: Apache-2.0 */
/* codec: chunks of gradients, weights and activations compressed without loss, and back.
 * format.h has the format, README.md the measurements. PURE.
 *
 * Owns: nothing; the caller gives all memory, at any alignment.  Threads: any, all at once, but one
 * at a time for each codec_memory.  Blocks: never.  Fails: as stated; whatever the input is,
 * nothing is read or written outside of what was given. Lengths are in bytes.
 *
 * A sender has a codec_memory for each connection:
 *
 *   width = codec_memory_choose(&memory);                 under the connection's lock
 *   result = codec_encode(width, chunk, bytes, out);      anywhere, several chunks at a time
 *   codec_memory_note(&memory, &result);                  under the lock, in any order
 *   result.bytes == 0: `chunk` is sent as it is;  else: result.bytes of `out`
 *
 * The frame says whether its chunk is compressed, and how long the chunk was. A receiver that knows
 * both calls codec_decode. A chunk should begin at a multiple of 4 bytes from the message's begin:
 * others are compressed, too, but gain less. */
#ifndef CODEC_CODEC_H
#define CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/codec/limits.h"

/* Of the format. It travels in the handshake, and in each compressed chunk. */
#define CODEC_VERSION 1

enum {
  /* Bytes of an element that codec_encode takes the chunk for. */
  CODEC_RAW = 0,    /* not compressed, at no cost */
  CODEC_GUESS = -1, /* it tries 1, 2 and 4: some microseconds */
};

/* Shorter chunks are not compressed: two blocks of the longest elements; a sample is one. */
#define CODEC_MIN_BYTES ((size_t)4096)
/* Longer chunks are not compressed: the header has 32 bits for the length. */
#define CODEC_MAX_BYTES ((size_t)UINT32_MAX)

/* What `out` of codec_encode has to have beyond the chunk's length: it notices only after a block
 * that coding does not pay. */
#define CODEC_SLACK_BYTES ((size_t)8192)
static inline size_t codec_room(size_t bytes) {
  return bytes + CODEC_SLACK_BYTES;
}

/* A chunk is compressed if it takes no more than this. */
static inline size_t codec_max_coded_bytes(size_t bytes) {
  return bytes / CODEC_RATIO_TENTHS * 10;
}

struct codec_result {
  uint32_t chunk_bytes;
  uint32_t bytes; /* compressed; 0: the chunk is to be sent as it is */
  int width;      /* 1, 2, 4, or CODEC_RAW */
  bool is_guess;  /* `width` was asked for by CODEC_GUESS */
};

/* Codes `bytes` bytes of `chunk` as elements of `width` bytes into `out`, which has
 * codec_room(bytes). What is in `out` behind the result is undefined. */
struct codec_result codec_encode(int width, const void *chunk, size_t bytes, void *out);

/* Decodes all `coded_bytes` bytes into exactly `bytes` bytes. 0; -EBADMSG: it is no compressed
 * chunk of this length, or of another version; `out` is then undefined. */
int codec_decode(const void *coded, size_t coded_bytes, void *out, size_t bytes);

/* ---- what a connection's traffic was like ---- */

/* Zeroed it is ready. Of no interest to others. */
struct codec_memory {
  int width;            /* of the last guess; CODEC_RAW: coding did not pay */
  uint32_t until_guess; /* chunks */
  uint32_t interval;    /* chunks between guesses, as it is now; 0: there was none yet */
  uint32_t usual;       /* compressed bytes of 1024, an average since the last guess */
  uint32_t misses;      /* chunks in a row that were not as usual */
  bool is_guessing;     /* a chunk is in progress that was asked to guess */
};

/* How the next chunk is to be compressed: 1, 2, 4, CODEC_RAW or CODEC_GUESS. */
int codec_memory_choose(struct codec_memory *memory);
/* How it went, for each chunk for which codec_encode was called with what codec_memory_choose
 * said; CODEC_RAW need not be noted. */
void codec_memory_note(struct codec_memory *memory, const struct codec_result *result);

/* ---- the forms, for tests and measurements ---- */

struct codec_form; /* format.h: its name, and whether it may be used here */
/* The fastest first; the last runs on any processor. NULL after the last. */
const struct codec_form *codec_form(size_t i);
/* As above, by this form. All give the same bytes. */
struct codec_result codec_encode_by(const struct codec_form *form, int width, const void *chunk,
                                    size_t bytes, void *out);
int codec_decode_by(const struct codec_form *form, const void *coded, size_t coded_bytes, void *out,
                    size_t bytes);

#endif
