/* SPDX-License-Identifier: Apache-2.0 */
/* format: the numbers of the compressed chunk, and what the forms (portable, AVX2, ...) each
 * provide. README.md explains both.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef CODEC_FORMAT_H
#define CODEC_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  CODEC_HEADER_BYTES = 8,
  CODEC_PLANE_BYTES = 4, /* of the header, for each plane */
  CODEC_MAX_WIDTH = 4,

  CODEC_BLOCK = 512, /* elements */
  CODEC_ROW = 64,    /* elements of which each one's code is in another byte */

  CODEC_MAX_BITS = 4,   /* of a code */
  CODEC_PLAIN_BITS = 8, /* bytes as they are */
  CODEC_FAR = 15,       /* an escape that is none of the 15 near ones */

  /* A plane of a block: codes, a half byte and a byte for each. */
  CODEC_MAX_PLANE_BLOCK = CODEC_BLOCK * CODEC_MAX_BITS / 8 + CODEC_BLOCK / 2 + CODEC_BLOCK,
  CODEC_MAX_BLOCK = 1 + CODEC_MAX_WIDTH * CODEC_MAX_PLANE_BLOCK,
  /* How far behind the last byte that counts a form may read or write. */
  CODEC_OVERRUN = 64,
};

/* How the bytes of a plane are coded; as in the header. */
struct codec_plane {
  uint8_t bits;    /* 1 to 4, or CODEC_PLAIN_BITS */
  uint8_t base;    /* of the window */
  uint8_t special; /* the byte with a code of its own, and the one that whole blocks may have */
  uint8_t below;   /* near escapes below the base, 0 to 15 */
};

struct codec_layout {
  unsigned width; /* bytes of an element, and number of planes */
  struct codec_plane planes[CODEC_MAX_WIDTH];
};

/* Codes 0 up to this are the bytes from `base` on; this one is the special byte; the one above is
 * an escape. */
static inline uint8_t codec_window(unsigned bits) {
  return (uint8_t)((1u << bits) - 2);
}

typedef uint8_t codec_block[CODEC_BLOCK];

/* In pieces: for all of it at once gcc 12 writes `rep movsq`, a third of the time that a block may
 * take. */
static inline void codec_copy_block(uint8_t *to, const uint8_t *from) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += CODEC_ROW) {
    memcpy(to + i, from + i, CODEC_ROW);
  }
}

/* Each function works on one block and reads and writes up to CODEC_OVERRUN bytes too many in what
 * is compressed, never in elements or planes. */
struct codec_form {
  const char *name;
  bool (*is_usable)(void);
  /* Elements of 2 or 4 bytes to planes, and back. */
  void (*split)(unsigned width, const uint8_t *elements, codec_block *planes);
  void (*join)(unsigned width, const codec_block *planes, uint8_t *elements);
  bool (*is_all)(const uint8_t *values, uint8_t value);
  /* A plane of 1 to 4 bits to codes and escapes, and back; returns the end of what is coded. */
  uint8_t *(*pack)(const struct codec_plane *plane, const uint8_t *values, uint8_t *coded);
  const uint8_t *(*unpack)(const struct codec_plane *plane, const uint8_t *coded, uint8_t *values);
};

extern const struct codec_form codec_portable;
#if defined(__x86_64__)
extern const struct codec_form codec_avx2, codec_avx512;
#elif defined(__aarch64__)
extern const struct codec_form codec_neon;
#endif

/* Finds from a sample how to code the planes of elements of this width, of which there are at least
 * CODEC_BLOCK. Returns the compressed bytes of a block that it expects. */
size_t codec_plan(const struct codec_form *form, unsigned width, const uint8_t *chunk, size_t bytes,
                  struct codec_layout *layout);

#endif
