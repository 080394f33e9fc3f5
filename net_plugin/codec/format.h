/* SPDX-License-Identifier: Apache-2.0 */
/* format: the numbers of the compressed chunk, and what the forms (portable, AVX2, ...) each
 * provide.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot.
 *
 * Version 1. Integers are little-endian. A compressed chunk is
 *
 *     header   8 bytes: version, 1; width, bytes of an element: 1, 2 or 4; two zeros; length of the
 *              chunk, 32 bits; then 4 bytes for each of the `width` planes, the lowest byte's
 *              first: bits, base, special, below
 *     blocks   one for each 512 elements
 *     rest     what of the chunk is left, less than 512 elements, as it is
 *
 * Nothing may follow. Elements to planes: an element is an integer. With width 2 and 4 its upper
 * 16 bits are rotated left by one, so that the sign is their lowest bit and, in bf16 and f32, the
 * exponent their upper byte. Plane i is byte i of all elements.
 *
 * A block is a byte whose bit i says that all 512 bytes of plane i are `special`, and then, for
 * each other plane in order, what its `bits` say. 8: the bytes as they are; `base` and `below` are
 * 0. 1 to 4: codes of so many bits, 64 x bits bytes; then a half byte for each escape; then a byte
 * for each far escape.
 *
 * Codes. With w = 2^bits - 2, for a byte v (all sums modulo 256): v == special: w. Else v - base <
 * w: v - base. Else w + 1, an escape. Element 64 r + j is in row r, column j. A field of f of the
 * codes' bits (f = 1, 2, 4) is f groups of 64 bytes: byte j of group g has column j of the 8 / f
 * rows from g x 8 / f on, the first in the lowest bits. Codes of 1, 2 and 4 bits are one field;
 * codes of 3 bits are two, the lower 2 bits and then the upper one.
 *
 * Escapes are in the order of elements. With s = v - base + below: near is s where s < below, else
 * s - w. Below 15, near is the half byte. Else the half byte is 15 and v itself is among the far
 * escapes, in the same order. Half byte 2 i is the lower one of byte i; after an odd number the
 * upper one of the last byte is 0.
 *
 * A writer may choose any base, special and below. A reader refuses another version or width, bits
 * other than 1, 2, 3, 4, 8, `below` above 15, a length that is not what it expects, and input that
 * ends early or late. It does not look at bits of a block's first byte beyond its planes, nor at
 * the half byte that is not used. Changed payload can be a chunk of other numbers: checksums are
 * the link's. */
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
