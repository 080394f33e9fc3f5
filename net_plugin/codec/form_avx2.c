/* SPDX-License-Identifier: Apache-2.0 */
/* The form for processors with AVX2: a row of a block is two registers; bytes are gathered by
 * tables, eight at a time. */
#include "net_plugin/codec/format.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "net_plugin/codec/form_tables.h"

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { LANE = 32, LANES = CODEC_BLOCK / LANE };

static bool is_usable(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

INLINE __m256i load(const uint8_t *from) {
  return _mm256_loadu_si256((const __m256i_u *)from);
}
INLINE void store(uint8_t *to, __m256i value) {
  _mm256_storeu_si256((__m256i_u *)to, value);
}
INLINE __m256i all(unsigned byte) {
  return _mm256_set1_epi8((char)byte);
}
/* Bytes of a that are not below those of b. */
INLINE __m256i at_least(__m256i a, __m256i b) {
  return _mm256_cmpeq_epi8(_mm256_max_epu8(a, b), a);
}
INLINE uint32_t mask_of(__m256i bytes) {
  return (uint32_t)_mm256_movemask_epi8(bytes);
}
INLINE unsigned bits_of(uint32_t mask) {
  return (unsigned)_mm_popcnt_u32(mask);
}
/* Bits for `count` bytes, of which there are more. */
INLINE uint32_t first(unsigned count) {
  return count >= LANE ? UINT32_MAX : _bzhi_u32(UINT32_MAX, count);
}
/* 0 to 15, twice. */
INLINE __m256i numbers(void) {
  return _mm256_set_epi64x(0x0f0e0d0c0b0a0908, 0x0706050403020100, 0x0f0e0d0c0b0a0908,
                           0x0706050403020100);
}
INLINE __m128i load_8(const void *from) {
  return _mm_loadl_epi64((const __m128i_u *)from);
}

/* Of 32 bytes those of the mask, one behind the other. Returns the end; 8 bytes behind it may be
 * written. */
INLINE uint8_t *gather(const uint8_t *values, uint32_t mask, uint8_t *out) {
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; i++, mask >>= 8) {
    __m128i indices = load_8(&codec_gather[mask & 0xff]);
    _mm_storel_epi64((__m128i_u *)out, _mm_shuffle_epi8(load_8(values + 8 * i), indices));
    out += bits_of(mask & 0xff);
  }
  return out;
}

/* Successive bytes at the places of the mask, zeros elsewhere. Up to 8 bytes behind them are read.
 */
INLINE __m256i scatter(const uint8_t *values, uint32_t mask) {
  __m128i parts[4];
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; i++, mask >>= 8) {
    parts[i] = _mm_shuffle_epi8(load_8(values), load_8(&codec_scatter[mask & 0xff]));
    values += bits_of(mask & 0xff);
  }
  return _mm256_set_m128i(_mm_unpacklo_epi64(parts[2], parts[3]),
                          _mm_unpacklo_epi64(parts[0], parts[1]));
}

/* ---- elements and planes ---- */

/* The lower and the upper byte of 32 numbers of 16 bits. */
INLINE void split_bytes(__m256i a, __m256i b, uint8_t *low, uint8_t *high) {
  __m256i byte = _mm256_set1_epi16(0xff);
  __m256i lows = _mm256_packus_epi16(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte));
  __m256i highs = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  store(low, _mm256_permute4x64_epi64(lows, 0xd8));
  store(high, _mm256_permute4x64_epi64(highs, 0xd8));
}

INLINE void join_bytes(__m256i low, __m256i high, __m256i *a, __m256i *b) {
  __m256i lower = _mm256_unpacklo_epi8(low, high), upper = _mm256_unpackhi_epi8(low, high);
  *a = _mm256_permute2x128_si256(lower, upper, 0x20);
  *b = _mm256_permute2x128_si256(lower, upper, 0x31);
}

INLINE __m256i sign_down(__m256i upper) {
  return _mm256_or_si256(_mm256_add_epi16(upper, upper), _mm256_srli_epi16(upper, 15));
}

INLINE __m256i sign_up(__m256i upper) {
  return _mm256_or_si256(_mm256_srli_epi16(upper, 1), _mm256_slli_epi16(upper, 15));
}

INLINE void split_2(const uint8_t *elements, codec_block *planes) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    split_bytes(sign_down(load(elements + 2 * i)), sign_down(load(elements + 2 * i + LANE)),
                planes[0] + i, planes[1] + i);
  }
}

INLINE void join_2(const codec_block *planes, uint8_t *elements) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    __m256i a, b;
    join_bytes(load(planes[0] + i), load(planes[1] + i), &a, &b);
    store(elements + 2 * i, sign_up(a));
    store(elements + 2 * i + LANE, sign_up(b));
  }
}

/* The lower or the upper halves of 16 numbers of 32 bits. */
INLINE __m256i lower_halves(__m256i a, __m256i b) {
  __m256i half = _mm256_set1_epi32(0xffff);
  __m256i halves = _mm256_packus_epi32(_mm256_and_si256(a, half), _mm256_and_si256(b, half));
  return _mm256_permute4x64_epi64(halves, 0xd8);
}

INLINE __m256i upper_halves(__m256i a, __m256i b) {
  __m256i halves = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
  return _mm256_permute4x64_epi64(halves, 0xd8);
}

INLINE void split_4(const uint8_t *elements, codec_block *planes) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    const uint8_t *in = elements + 4 * i;
    __m256i a = load(in), b = load(in + LANE), c = load(in + 2 * LANE), d = load(in + 3 * LANE);
    split_bytes(lower_halves(a, b), lower_halves(c, d), planes[0] + i, planes[1] + i);
    split_bytes(sign_down(upper_halves(a, b)), sign_down(upper_halves(c, d)), planes[2] + i,
                planes[3] + i);
  }
}

INLINE void join_halves(__m256i low, __m256i high, uint8_t *elements) {
  __m256i lower = _mm256_unpacklo_epi16(low, high), upper = _mm256_unpackhi_epi16(low, high);
  store(elements, _mm256_permute2x128_si256(lower, upper, 0x20));
  store(elements + LANE, _mm256_permute2x128_si256(lower, upper, 0x31));
}

INLINE void join_4(const codec_block *planes, uint8_t *elements) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    __m256i low[2], high[2];
    join_bytes(load(planes[0] + i), load(planes[1] + i), &low[0], &low[1]);
    join_bytes(load(planes[2] + i), load(planes[3] + i), &high[0], &high[1]);
    join_halves(low[0], sign_up(high[0]), elements + 4 * i);
    join_halves(low[1], sign_up(high[1]), elements + 4 * i + 2 * LANE);
  }
}

TARGET static void split(unsigned width, const uint8_t *elements, codec_block *planes) {
  if (width == 2) {
    split_2(elements, planes);
  } else {
    split_4(elements, planes);
  }
}

TARGET static void join(unsigned width, const codec_block *planes, uint8_t *elements) {
  if (width == 2) {
    join_2(planes, elements);
  } else {
    join_4(planes, elements);
  }
}

TARGET static bool is_all(const uint8_t *values, uint8_t value) {
  __m256i other = _mm256_setzero_si256();
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    other = _mm256_or_si256(other, _mm256_xor_si256(load(values + i), all(value)));
  }
  return _mm256_testz_si256(other, other);
}

/* ---- codes ---- */

INLINE uint8_t *pack_field(unsigned field, unsigned shift, const uint8_t *codes, uint8_t *coded) {
  __m256i mask = all((1u << field) - 1);
  for (unsigned i = 0; i < 2 * field; i++, coded += LANE) {
    const uint8_t *column = codes + i / 2 * (8 / field) * CODEC_ROW + i % 2 * LANE;
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (unsigned at = 0; at < 8; at += field, column += CODEC_ROW) {
      __m256i part = _mm256_and_si256(_mm256_srli_epi16(load(column), (int)shift), mask);
      sum = _mm256_or_si256(sum, _mm256_slli_epi16(part, (int)at));
    }
    store(coded, sum);
  }
  return coded;
}

INLINE const uint8_t *unpack_field(unsigned field, unsigned shift, const uint8_t *coded,
                                   uint8_t *codes) {
  __m256i mask = all((1u << field) - 1);
  for (unsigned i = 0; i < 2 * field; i++, coded += LANE) {
    uint8_t *column = codes + i / 2 * (8 / field) * CODEC_ROW + i % 2 * LANE;
    __m256i sum = load(coded);
#pragma GCC unroll 8
    for (unsigned at = 0; at < 8; at += field, column += CODEC_ROW) {
      __m256i part = _mm256_and_si256(_mm256_srli_epi16(sum, (int)at), mask);
      part = _mm256_slli_epi16(part, (int)shift);
      store(column, shift == 0 ? part : _mm256_or_si256(load(column), part));
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
  __m256i start = all((unsigned)(plane->base - plane->below)), below = all(plane->below);
  __m256i window = all(codec_window(plane->bits)), last = all(CODEC_FAR);
  for (unsigned i = 0; i < count; i += LANE) {
    __m256i near = _mm256_sub_epi8(load(escapes + i), start);
    near = _mm256_sub_epi8(near, _mm256_and_si256(at_least(near, below), window));
    end = gather(escapes + i, mask_of(at_least(near, last)) & first(count - i), end);
    __m256i half = _mm256_min_epu8(near, last);
    half = _mm256_maddubs_epi16(half, _mm256_set1_epi16(0x1001));
    half = _mm256_permute4x64_epi64(_mm256_packus_epi16(half, half), 0x08);
    _mm_storeu_si128((__m128i_u *)(coded + i / 2), _mm256_castsi256_si128(half));
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
  __m256i near = _mm256_add_epi8(numbers(), all((unsigned)(plane->base - plane->below)));
  __m256i is_above = at_least(numbers(), all(plane->below));
  near = _mm256_add_epi8(near, _mm256_and_si256(is_above, all(codec_window(plane->bits))));
  near = _mm256_andnot_si256(_mm256_cmpeq_epi8(numbers(), all(CODEC_FAR)), near);
  for (unsigned i = 0; i < count; i += LANE, coded += LANE / 2) {
    __m256i half = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i_u *)coded));
    half = _mm256_and_si256(_mm256_or_si256(half, _mm256_slli_epi16(half, 4)), all(CODEC_FAR));
    uint32_t is_far = mask_of(_mm256_cmpeq_epi8(half, all(CODEC_FAR))) & first(count - i);
    __m256i escape = _mm256_or_si256(_mm256_shuffle_epi8(near, half), scatter(far, is_far));
    store(escapes + i, escape);
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
  __m256i base = all(plane->base), special = all(plane->special), below = all(plane->below);
  __m256i window = all(codec_window(bits)), beyond = all(codec_window(bits) + 1u);
  __m256i far_from = all(codec_window(bits) + (unsigned)CODEC_FAR);
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    __m256i value = load(values + i), offset = _mm256_sub_epi8(value, base);
    __m256i is_special = _mm256_cmpeq_epi8(value, special);
    __m256i is_escape = _mm256_andnot_si256(is_special, at_least(offset, window));
    __m256i code = _mm256_blendv_epi8(offset, window, is_special);
    store(codes + i, _mm256_blendv_epi8(code, beyond, is_escape));
    end = gather(values + i, mask_of(is_escape), end);
    /* Escapes below the window are near, and 15 - below of those above it. */
    __m256i is_far = at_least(_mm256_add_epi8(offset, below), far_from);
    fars += bits_of(mask_of(_mm256_and_si256(is_far, is_escape)));
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
  __m256i window = all(codec_window(bits)), beyond = all(codec_window(bits) + 1u);
  if (bits == 3) {
    coded = unpack_field(2, 0, coded, codes);
    coded = unpack_field(1, 2, coded, codes);
  } else {
    coded = unpack_field(bits, 0, coded, codes);
  }
  for (unsigned i = 0; i < LANES; i++) {
    is_escape[i] = mask_of(_mm256_cmpeq_epi8(load(codes + i * LANE), beyond));
    count += bits_of(is_escape[i]);
  }
  coded = unpack_escapes(plane, coded, count, escapes);
  __m256i bytes = _mm256_add_epi8(numbers(), all(plane->base));
  bytes = _mm256_blendv_epi8(bytes, all(plane->special), _mm256_cmpeq_epi8(numbers(), window));
  bytes = _mm256_andnot_si256(_mm256_cmpeq_epi8(numbers(), beyond), bytes);
  const uint8_t *escape = escapes;
  for (unsigned i = 0; i < LANES; i++) {
    __m256i value = _mm256_shuffle_epi8(bytes, load(codes + i * LANE));
    store(values + i * LANE, _mm256_or_si256(value, scatter(escape, is_escape[i])));
    escape += bits_of(is_escape[i]);
  }
  return coded;
}

TARGET static uint8_t *pack(const struct codec_plane *plane, const uint8_t *values,
                            uint8_t *coded) {
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

TARGET static const uint8_t *unpack(const struct codec_plane *plane, const uint8_t *coded,
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

const struct codec_form codec_avx2 = { "avx2", is_usable, split, join, is_all, pack, unpack };

#endif
