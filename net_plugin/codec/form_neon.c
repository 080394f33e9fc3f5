/* SPDX-License-Identifier: Apache-2.0 */
/* The form for 64-bit ARM, all of which has NEON: a row of a block is four registers; bytes are
 * gathered by tables, eight at a time. */
#include "net_plugin/codec/format.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "net_plugin/codec/form_tables.h"

#define TARGET
#define INLINE static inline __attribute__((always_inline))

enum { LANE = 16, LANES = CODEC_BLOCK / LANE };

static bool is_usable(void) {
  return true;
}

typedef uint8x16_t vec;

INLINE vec load(const uint8_t *from) {
  return vld1q_u8(from);
}
INLINE void store(uint8_t *to, vec value) {
  vst1q_u8(to, value);
}
INLINE vec all(unsigned byte) {
  return vdupq_n_u8((uint8_t)byte);
}
INLINE vec numbers(void) {
  return vcombine_u8(vcreate_u8(0x0706050403020100), vcreate_u8(0x0f0e0d0c0b0a0908));
}
INLINE vec left(vec bytes, unsigned bits) {
  return vshlq_u8(bytes, vdupq_n_s8((int8_t)bits));
}
INLINE vec right(vec bytes, unsigned bits) {
  return vshlq_u8(bytes, vdupq_n_s8((int8_t) - (int)bits));
}
INLINE vec equal(vec a, vec b) {
  return vceqq_u8(a, b);
}
INLINE vec at_least(vec a, vec b) {
  return vcgeq_u8(a, b);
}
INLINE vec blend(vec mask, vec a, vec b) {
  return vbslq_u8(mask, a, b);
}
INLINE uint32_t mask_of(vec bytes) {
  vec weights = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  vec bits = vandq_u8(bytes, weights);
  return vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
INLINE unsigned bits_of(uint32_t mask) {
  return (unsigned)__builtin_popcount(mask);
}
INLINE unsigned count_of(vec bytes) {
  return vaddvq_u8(vandq_u8(bytes, all(1)));
}
INLINE uint32_t first(unsigned count) {
  return count >= LANE ? 0xffff : (1u << count) - 1;
}
INLINE bool is_zero(vec bytes) {
  return vmaxvq_u8(bytes) == 0;
}
INLINE vec look_up(vec table, vec indices) {
  return vqtbl1q_u8(table, indices);
}

INLINE uint8_t *gather(const uint8_t *values, uint32_t mask, uint8_t *out) {
  vst1_u8(out, vtbl1_u8(vld1_u8(values), vcreate_u8(codec_gather[mask & 0xff])));
  out += bits_of(mask & 0xff);
  vst1_u8(out, vtbl1_u8(vld1_u8(values + 8), vcreate_u8(codec_gather[mask >> 8])));
  return out + bits_of(mask >> 8);
}

INLINE vec scatter(const uint8_t *values, uint32_t mask) {
  uint8x8_t low = vtbl1_u8(vld1_u8(values), vcreate_u8(codec_scatter[mask & 0xff]));
  values += bits_of(mask & 0xff);
  return vcombine_u8(low, vtbl1_u8(vld1_u8(values), vcreate_u8(codec_scatter[mask >> 8])));
}

INLINE void pack_halves(vec bytes, uint8_t *coded) {
  uint8x8_t even = vget_low_u8(vuzp1q_u8(bytes, bytes)), odd = vget_low_u8(vuzp2q_u8(bytes, bytes));
  vst1_u8(coded, vorr_u8(even, vshl_n_u8(odd, 4)));
}

INLINE vec unpack_halves(const uint8_t *coded) {
  uint8x8_t pair = vld1_u8(coded);
  uint8x8_t even = vand_u8(pair, vdup_n_u8(CODEC_FAR)), odd = vshr_n_u8(pair, 4);
  return vcombine_u8(vzip1_u8(even, odd), vzip2_u8(even, odd));
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

#include "net_plugin/codec/form_bytes.h"

const struct codec_form codec_neon = { "neon", is_usable, split, join, is_all, pack, unpack };

#endif
