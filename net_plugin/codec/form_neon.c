/* SPDX-License-Identifier: Apache-2.0 */
/* The form for 64-bit ARM, all of which has NEON: a row of a block is four registers; bytes are
 * gathered by tables, eight at a time. */
#include "net_plugin/codec/format.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "net_plugin/codec/form_tables.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANE = 16, LANES = CODEC_BLOCK / LANE };

static bool is_usable(void) {
  return true;
}

INLINE uint8x16_t all(unsigned byte) {
  return vdupq_n_u8((uint8_t)byte);
}

/* 0 to 15. */
INLINE uint8x16_t numbers(void) {
  return vcombine_u8(vcreate_u8(0x0706050403020100), vcreate_u8(0x0f0e0d0c0b0a0908));
}

/* A bit for each byte, whose bits are all the same. */
INLINE uint32_t mask_of(uint8x16_t bytes) {
  uint8x16_t weights = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t bits = vandq_u8(bytes, weights);
  return vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

INLINE unsigned bits_of(uint32_t mask) {
  return (unsigned)__builtin_popcount(mask);
}

/* Bits for `count` bytes, of which there are more. */
INLINE uint32_t first(unsigned count) {
  return count >= LANE ? 0xffff : (1u << count) - 1;
}

/* Of 16 bytes those of the mask, one behind the other. Returns the end; 8 bytes behind it may be
 * written. */
INLINE uint8_t *gather(uint8x16_t values, uint32_t mask, uint8_t *out) {
  vst1_u8(out, vtbl1_u8(vget_low_u8(values), vcreate_u8(codec_gather[mask & 0xff])));
  out += bits_of(mask & 0xff);
  vst1_u8(out, vtbl1_u8(vget_high_u8(values), vcreate_u8(codec_gather[mask >> 8])));
  return out + bits_of(mask >> 8);
}

/* Successive bytes at the places of the mask, zeros elsewhere. Up to 8 bytes behind them are read.
 */
INLINE uint8x16_t scatter(const uint8_t *values, uint32_t mask) {
  uint8x8_t low = vtbl1_u8(vld1_u8(values), vcreate_u8(codec_scatter[mask & 0xff]));
  values += bits_of(mask & 0xff);
  return vcombine_u8(low, vtbl1_u8(vld1_u8(values), vcreate_u8(codec_scatter[mask >> 8])));
}

/* ---- elements and planes ---- */

/* The sign below the lowest bit that is left of upper and lower byte, and back. */
INLINE void signs_down(uint8x16_t *low, uint8x16_t *high) {
  uint8x16_t sign = vshrq_n_u8(*high, 7);
  *high = vorrq_u8(vshlq_n_u8(*high, 1), vshrq_n_u8(*low, 7));
  *low = vorrq_u8(vshlq_n_u8(*low, 1), sign);
}

INLINE void signs_up(uint8x16_t *low, uint8x16_t *high) {
  uint8x16_t sign = vshlq_n_u8(*low, 7);
  *low = vorrq_u8(vshrq_n_u8(*low, 1), vshlq_n_u8(*high, 7));
  *high = vorrq_u8(vshrq_n_u8(*high, 1), sign);
}

static void split(unsigned width, const uint8_t *elements, codec_block *planes) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    if (width == 2) {
      uint8x16x2_t in = vld2q_u8(elements + 2 * i);
      signs_down(&in.val[0], &in.val[1]);
      vst1q_u8(planes[0] + i, in.val[0]);
      vst1q_u8(planes[1] + i, in.val[1]);
    } else {
      uint8x16x4_t in = vld4q_u8(elements + 4 * i);
      signs_down(&in.val[2], &in.val[3]);
      for (unsigned k = 0; k < 4; k++) {
        vst1q_u8(planes[k] + i, in.val[k]);
      }
    }
  }
}

static void join(unsigned width, const codec_block *planes, uint8_t *elements) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    if (width == 2) {
      uint8x16x2_t out = { { vld1q_u8(planes[0] + i), vld1q_u8(planes[1] + i) } };
      signs_up(&out.val[0], &out.val[1]);
      vst2q_u8(elements + 2 * i, out);
    } else {
      uint8x16x4_t out = { { vld1q_u8(planes[0] + i), vld1q_u8(planes[1] + i),
                             vld1q_u8(planes[2] + i), vld1q_u8(planes[3] + i) } };
      signs_up(&out.val[2], &out.val[3]);
      vst4q_u8(elements + 4 * i, out);
    }
  }
}

static bool is_all(const uint8_t *values, uint8_t value) {
  uint8x16_t other = all(0);
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    other = vorrq_u8(other, veorq_u8(vld1q_u8(values + i), all(value)));
  }
  return vmaxvq_u8(other) == 0;
}

/* ---- codes ---- */

/* By a number that is the same for all, to the left or, below 0, to the right. */
INLINE uint8x16_t shifted(uint8x16_t bytes, int left) {
  return vshlq_u8(bytes, vdupq_n_s8((int8_t)left));
}

INLINE uint8_t *pack_field(unsigned field, unsigned shift, const uint8_t *codes, uint8_t *coded) {
  uint8x16_t mask = all((1u << field) - 1);
  for (unsigned i = 0; i < 4 * field; i++, coded += LANE) {
    const uint8_t *column = codes + i / 4 * (8 / field) * CODEC_ROW + i % 4 * LANE;
    uint8x16_t sum = all(0);
    for (unsigned at = 0; at < 8; at += field, column += CODEC_ROW) {
      uint8x16_t part = vandq_u8(shifted(vld1q_u8(column), -(int)shift), mask);
      sum = vorrq_u8(sum, shifted(part, (int)at));
    }
    vst1q_u8(coded, sum);
  }
  return coded;
}

INLINE const uint8_t *unpack_field(unsigned field, unsigned shift, const uint8_t *coded,
                                   uint8_t *codes) {
  uint8x16_t mask = all((1u << field) - 1);
  for (unsigned i = 0; i < 4 * field; i++, coded += LANE) {
    uint8_t *column = codes + i / 4 * (8 / field) * CODEC_ROW + i % 4 * LANE;
    uint8x16_t sum = vld1q_u8(coded);
    for (unsigned at = 0; at < 8; at += field, column += CODEC_ROW) {
      uint8x16_t part = vandq_u8(shifted(sum, -(int)at), mask);
      part = shifted(part, (int)shift);
      vst1q_u8(column, shift == 0 ? part : vorrq_u8(vld1q_u8(column), part));
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
  uint8x16_t start = all((unsigned)(plane->base - plane->below)), below = all(plane->below);
  uint8x16_t window = all(codec_window(plane->bits)), last = all(CODEC_FAR);
  for (unsigned i = 0; i < count; i += LANE) {
    uint8x16_t escape = vld1q_u8(escapes + i);
    uint8x16_t near = vsubq_u8(escape, start);
    near = vsubq_u8(near, vandq_u8(vcgeq_u8(near, below), window));
    end = gather(escape, mask_of(vcgeq_u8(near, last)) & first(count - i), end);
    uint8x16_t half = vminq_u8(near, last);
    uint8x8_t even = vget_low_u8(vuzp1q_u8(half, half)), odd = vget_low_u8(vuzp2q_u8(half, half));
    vst1_u8(coded + i / 2, vorr_u8(even, vshl_n_u8(odd, 4)));
  }
  if (count % 2 == 1) {
    coded[count / 2] &= CODEC_FAR;
  }
  coded += (count + 1) / 2;
  for (unsigned i = 0; i < fars; i += LANE) {
    vst1q_u8(coded + i, vld1q_u8(far + i));
  }
}

INLINE const uint8_t *unpack_escapes(const struct codec_plane *plane, const uint8_t *coded,
                                     unsigned count, uint8_t *escapes) {
  const uint8_t *far = coded + (count + 1) / 2;
  /* What the half bytes stand for; 0 for far ones. */
  uint8x16_t near = vaddq_u8(numbers(), all((unsigned)(plane->base - plane->below)));
  uint8x16_t is_above = vcgeq_u8(numbers(), all(plane->below));
  near = vaddq_u8(near, vandq_u8(is_above, all(codec_window(plane->bits))));
  near = vbicq_u8(near, vceqq_u8(numbers(), all(CODEC_FAR)));
  for (unsigned i = 0; i < count; i += LANE, coded += LANE / 2) {
    uint8x8_t pair = vld1_u8(coded);
    uint8x8_t even = vand_u8(pair, vdup_n_u8(CODEC_FAR)), odd = vshr_n_u8(pair, 4);
    uint8x16_t half = vcombine_u8(vzip1_u8(even, odd), vzip2_u8(even, odd));
    uint32_t is_far = mask_of(vceqq_u8(half, all(CODEC_FAR))) & first(count - i);
    vst1q_u8(escapes + i, vorrq_u8(vqtbl1q_u8(near, half), scatter(far, is_far)));
    far += bits_of(is_far);
  }
  return far;
}

/* ---- planes ---- */

INLINE uint8_t *pack_bits(unsigned bits, const struct codec_plane *plane, const uint8_t *values,
                          uint8_t *coded) {
  uint8_t codes[CODEC_BLOCK], escapes[CODEC_BLOCK + LANE], *end = escapes;
  unsigned fars = 0;
  uint8x16_t base = all(plane->base), special = all(plane->special), below = all(plane->below);
  uint8x16_t window = all(codec_window(bits)), beyond = all(codec_window(bits) + 1u);
  uint8x16_t far_from = all(codec_window(bits) + (unsigned)CODEC_FAR);
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    uint8x16_t value = vld1q_u8(values + i), offset = vsubq_u8(value, base);
    uint8x16_t is_special = vceqq_u8(value, special);
    uint8x16_t is_escape = vbicq_u8(vcgeq_u8(offset, window), is_special);
    uint8x16_t code = vbslq_u8(is_special, window, offset);
    vst1q_u8(codes + i, vbslq_u8(is_escape, beyond, code));
    end = gather(value, mask_of(is_escape), end);
    /* Escapes below the window are near, and 15 - below of those above it. */
    uint8x16_t is_far = vandq_u8(vcgeq_u8(vaddq_u8(offset, below), far_from), is_escape);
    fars += vaddvq_u8(vandq_u8(is_far, all(1)));
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
  uint8_t codes[CODEC_BLOCK], escapes[CODEC_BLOCK + LANE];
  uint32_t is_escape[LANES];
  unsigned count = 0;
  uint8x16_t window = all(codec_window(bits)), beyond = all(codec_window(bits) + 1u);
  if (bits == 3) {
    coded = unpack_field(2, 0, coded, codes);
    coded = unpack_field(1, 2, coded, codes);
  } else {
    coded = unpack_field(bits, 0, coded, codes);
  }
  for (unsigned i = 0; i < LANES; i++) {
    is_escape[i] = mask_of(vceqq_u8(vld1q_u8(codes + i * LANE), beyond));
    count += bits_of(is_escape[i]);
  }
  coded = unpack_escapes(plane, coded, count, escapes);
  uint8x16_t bytes = vaddq_u8(numbers(), all(plane->base));
  bytes = vbslq_u8(vceqq_u8(numbers(), window), all(plane->special), bytes);
  bytes = vbicq_u8(bytes, vceqq_u8(numbers(), beyond));
  const uint8_t *escape = escapes;
  for (unsigned i = 0; i < LANES; i++) {
    uint8x16_t value = vqtbl1q_u8(bytes, vld1q_u8(codes + i * LANE));
    vst1q_u8(values + i * LANE, vorrq_u8(value, scatter(escape, is_escape[i])));
    escape += bits_of(is_escape[i]);
  }
  return coded;
}

static uint8_t *pack(const struct codec_plane *plane, const uint8_t *values, uint8_t *coded) {
  switch (plane->bits) {
  case 1:
    return pack_bits(1, plane, values, coded);
  case 2:
    return pack_bits(2, plane, values, coded);
  case 3:
    return pack_bits(3, plane, values, coded);
  default:
    return pack_bits(4, plane, values, coded);
  }
}

static const uint8_t *unpack(const struct codec_plane *plane, const uint8_t *coded,
                             uint8_t *values) {
  switch (plane->bits) {
  case 1:
    return unpack_bits(1, plane, coded, values);
  case 2:
    return unpack_bits(2, plane, coded, values);
  case 3:
    return unpack_bits(3, plane, coded, values);
  default:
    return unpack_bits(4, plane, coded, values);
  }
}

const struct codec_form codec_neon = { "neon", is_usable, split, join, is_all, pack, unpack };

#endif
