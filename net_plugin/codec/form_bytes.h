/* SPDX-License-Identifier: Apache-2.0 */
/* form_bytes: codes and escapes for processors that gather bytes by tables, eight at a time (AVX2,
 * NEON). For the one file that includes it, which defines TARGET; INLINE; `vec`, a register of LANE
 * bytes, LANES of which are a block; and
 *
 *   load, store     LANE bytes
 *   all, numbers    one byte in all places; 0 to 15, repeated
 *   left, right     each byte shifted; bits of a neighbour may come in, unless the caller masks
 *   equal, at_least comparisons of bytes: all bits of a byte are set, or none
 *   blend           by a comparison: where it is set the second operand, else the third
 *   mask_of         of a comparison, a bit for each byte
 *   bits_of         how many bits of a mask are set
 *   count_of        how many bytes of a comparison are set
 *   first           a mask of so many bytes, or of all where there are more
 *   is_zero         whether all bytes are 0
 *   look_up         each byte of the second operand as an index into the 16 of the first
 *   gather          bytes of a mask, one behind the other; returns their end, and may write 8 more
 *   scatter         successive bytes to the places of a mask, 0 elsewhere; may read 8 more
 *   pack_halves     bytes below 16, two in a byte
 *   unpack_halves   and back */
#ifndef CODEC_FORM_BYTES_H
#define CODEC_FORM_BYTES_H

enum { ROW_LANES = CODEC_ROW / LANE };

TARGET static bool is_all(const uint8_t *values, uint8_t value) {
  vec other = all(0);
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    other |= load(values + i) ^ all(value);
  }
  return is_zero(other);
}

/* ---- codes ---- */

INLINE uint8_t *pack_field(unsigned field, unsigned shift, const uint8_t *codes, uint8_t *coded) {
  vec mask = all((1u << field) - 1);
  for (unsigned i = 0; i < ROW_LANES * field; i++, coded += LANE) {
    const uint8_t *column = codes + i / ROW_LANES * (8 / field) * CODEC_ROW + i % ROW_LANES * LANE;
    vec sum = all(0);
#pragma GCC unroll 8
    for (unsigned at = 0; at < 8; at += field, column += CODEC_ROW) {
      sum |= left(right(load(column), shift) & mask, at);
    }
    store(coded, sum);
  }
  return coded;
}

INLINE const uint8_t *unpack_field(unsigned field, unsigned shift, const uint8_t *coded,
                                   uint8_t *codes) {
  vec mask = all((1u << field) - 1);
  for (unsigned i = 0; i < ROW_LANES * field; i++, coded += LANE) {
    uint8_t *column = codes + i / ROW_LANES * (8 / field) * CODEC_ROW + i % ROW_LANES * LANE;
    vec sum = load(coded);
#pragma GCC unroll 8
    for (unsigned at = 0; at < 8; at += field, column += CODEC_ROW) {
      vec part = left(right(sum, at) & mask, shift);
      store(column, shift == 0 ? part : load(column) | part);
    }
  }
  return coded;
}

/* ---- escapes ---- */

/* The end is known without them: what comes after them need not wait until `escapes` can be read.
 */
INLINE void pack_escapes(const struct codec_plane *plane, const uint8_t *escapes, unsigned count,
                         unsigned fars, uint8_t *coded) {
  uint8_t far[CODEC_BLOCK + LANE], *end = far;
  vec start = all((unsigned)(plane->base - plane->below)), below = all(plane->below);
  vec window = all(codec_window(plane->bits)), last = all(CODEC_FAR);
  for (unsigned i = 0; i < count; i += LANE) {
    vec near = load(escapes + i) - start;
    near -= at_least(near, below) & window;
    vec is_far = at_least(near, last);
    end = gather(escapes + i, mask_of(is_far) & first(count - i), end);
    pack_halves(blend(is_far, last, near), coded + i / 2);
  }
  if (count % 2 == 1) {
    coded[count / 2] &= CODEC_FAR;
  }
  coded += (count + 1) / 2;
  for (unsigned i = 0; i < fars; i += LANE) {
    store(coded + i, load(far + i));
  }
}

INLINE const uint8_t *unpack_escapes(const struct codec_plane *plane, const uint8_t *coded,
                                     unsigned count, uint8_t *escapes) {
  const uint8_t *far = coded + (count + 1) / 2;
  /* What the half bytes stand for; 0 for far ones. */
  vec near = numbers() + all((unsigned)(plane->base - plane->below));
  near += at_least(numbers(), all(plane->below)) & all(codec_window(plane->bits));
  near &= ~equal(numbers(), all(CODEC_FAR));
  for (unsigned i = 0; i < count; i += LANE, coded += LANE / 2) {
    vec half = unpack_halves(coded);
    uint32_t is_far = mask_of(equal(half, all(CODEC_FAR))) & first(count - i);
    store(escapes + i, look_up(near, half) | scatter(far, is_far));
    far += bits_of(is_far);
  }
  return far;
}

/* ---- planes ---- */

INLINE uint8_t *pack_bits(unsigned bits, const struct codec_plane *plane, const uint8_t *values,
                          uint8_t *coded) {
  _Alignas(64) uint8_t codes[CODEC_BLOCK], escapes[CODEC_BLOCK + LANE];
  uint8_t *end = escapes;
  unsigned fars = 0;
  vec base = all(plane->base), special = all(plane->special), below = all(plane->below);
  vec window = all(codec_window(bits)), beyond = all(codec_window(bits) + 1u);
  vec far_from = all(codec_window(bits) + (unsigned)CODEC_FAR);
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    vec value = load(values + i), offset = value - base;
    vec is_special = equal(value, special);
    vec is_escape = at_least(offset, window) & ~is_special;
    store(codes + i, blend(is_escape, beyond, blend(is_special, window, offset)));
    end = gather(values + i, mask_of(is_escape), end);
    /* Escapes below the window are near, and 15 - below of those above it. */
    fars += count_of(at_least(offset + below, far_from) & is_escape);
  }
  if (bits == 3) {
    coded = pack_field(2, 0, codes, coded);
    coded = pack_field(1, 2, codes, coded);
  } else {
    coded = pack_field(bits, 0, codes, coded);
  }
  unsigned count = (unsigned)(end - escapes);
  pack_escapes(plane, escapes, count, fars, coded);
  return coded + (count + 1) / 2 + fars;
}

INLINE const uint8_t *unpack_bits(unsigned bits, const struct codec_plane *plane,
                                  const uint8_t *coded, uint8_t *values) {
  _Alignas(64) uint8_t codes[CODEC_BLOCK], escapes[CODEC_BLOCK + LANE];
  uint32_t is_escape[LANES];
  unsigned count = 0;
  vec window = all(codec_window(bits)), beyond = all(codec_window(bits) + 1u);
  if (bits == 3) {
    coded = unpack_field(2, 0, coded, codes);
    coded = unpack_field(1, 2, coded, codes);
  } else {
    coded = unpack_field(bits, 0, coded, codes);
  }
  for (unsigned i = 0; i < LANES; i++) {
    is_escape[i] = mask_of(equal(load(codes + i * LANE), beyond));
    count += bits_of(is_escape[i]);
  }
  coded = unpack_escapes(plane, coded, count, escapes);
  vec bytes = numbers() + all(plane->base);
  bytes = blend(equal(numbers(), window), all(plane->special), bytes);
  bytes &= ~equal(numbers(), beyond);
  const uint8_t *escape = escapes;
  for (unsigned i = 0; i < LANES; i++) {
    vec value = look_up(bytes, load(codes + i * LANE));
    store(values + i * LANE, value | scatter(escape, is_escape[i]));
    escape += bits_of(is_escape[i]);
  }
  return coded;
}

#include "net_plugin/codec/form_bits.h"

#endif
