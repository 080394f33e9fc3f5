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

typedef uint8_t vec __attribute__((vector_size(32)));

INLINE vec load(const uint8_t *from) {
  return (vec)_mm256_loadu_si256((const __m256i_u *)from);
}
INLINE void store(uint8_t *to, vec value) {
  _mm256_storeu_si256((__m256i_u *)to, (__m256i)value);
}
INLINE vec all(unsigned byte) {
  return (vec)_mm256_set1_epi8((char)byte);
}
INLINE vec numbers(void) {
  return (vec)_mm256_set_epi64x(0x0f0e0d0c0b0a0908, 0x0706050403020100, 0x0f0e0d0c0b0a0908,
                                0x0706050403020100);
}
INLINE vec left(vec bytes, unsigned bits) {
  return (vec)_mm256_slli_epi16((__m256i)bytes, (int)bits);
}
INLINE vec right(vec bytes, unsigned bits) {
  return (vec)_mm256_srli_epi16((__m256i)bytes, (int)bits);
}
INLINE vec equal(vec a, vec b) {
  return (vec)_mm256_cmpeq_epi8((__m256i)a, (__m256i)b);
}
INLINE vec at_least(vec a, vec b) {
  return equal((vec)_mm256_max_epu8((__m256i)a, (__m256i)b), a);
}
INLINE vec blend(vec mask, vec a, vec b) {
  return (vec)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)mask);
}
INLINE uint32_t mask_of(vec bytes) {
  return (uint32_t)_mm256_movemask_epi8((__m256i)bytes);
}
INLINE unsigned bits_of(uint32_t mask) {
  return (unsigned)_mm_popcnt_u32(mask);
}
INLINE unsigned count_of(vec bytes) {
  return bits_of(mask_of(bytes));
}
INLINE uint32_t first(unsigned count) {
  return count >= LANE ? UINT32_MAX : _bzhi_u32(UINT32_MAX, count);
}
INLINE bool is_zero(vec bytes) {
  return _mm256_testz_si256((__m256i)bytes, (__m256i)bytes);
}
INLINE vec look_up(vec table, vec indices) {
  return (vec)_mm256_shuffle_epi8((__m256i)table, (__m256i)indices);
}
INLINE __m128i load_8(const void *from) {
  return _mm_loadl_epi64((const __m128i_u *)from);
}

INLINE uint8_t *gather(const uint8_t *values, uint32_t mask, uint8_t *out) {
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; i++, mask >>= 8) {
    __m128i indices = load_8(&codec_gather[mask & 0xff]);
    _mm_storel_epi64((__m128i_u *)out, _mm_shuffle_epi8(load_8(values + 8 * i), indices));
    out += bits_of(mask & 0xff);
  }
  return out;
}

INLINE vec scatter(const uint8_t *values, uint32_t mask) {
  __m128i parts[4];
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; i++, mask >>= 8) {
    parts[i] = _mm_shuffle_epi8(load_8(values), load_8(&codec_scatter[mask & 0xff]));
    values += bits_of(mask & 0xff);
  }
  return (vec)_mm256_set_m128i(_mm_unpacklo_epi64(parts[2], parts[3]),
                               _mm_unpacklo_epi64(parts[0], parts[1]));
}

INLINE void pack_halves(vec bytes, uint8_t *coded) {
  __m256i half = _mm256_maddubs_epi16((__m256i)bytes, _mm256_set1_epi16(0x1001));
  half = _mm256_permute4x64_epi64(_mm256_packus_epi16(half, half), 0x08);
  _mm_storeu_si128((__m128i_u *)coded, _mm256_castsi256_si128(half));
}

INLINE vec unpack_halves(const uint8_t *coded) {
  __m256i half = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i_u *)coded));
  return (vec)_mm256_or_si256(half, _mm256_slli_epi16(half, 4)) & all(CODEC_FAR);
}

/* ---- elements and planes ---- */

INLINE __m256i load_words(const uint8_t *from) {
  return (__m256i)load(from);
}
INLINE void store_words(uint8_t *to, __m256i value) {
  store(to, (vec)value);
}

/* The lower and the upper byte of 32 numbers of 16 bits. */
INLINE void split_bytes(__m256i a, __m256i b, uint8_t *low, uint8_t *high) {
  __m256i byte = _mm256_set1_epi16(0xff);
  __m256i lows = _mm256_packus_epi16(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte));
  __m256i highs = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  store_words(low, _mm256_permute4x64_epi64(lows, 0xd8));
  store_words(high, _mm256_permute4x64_epi64(highs, 0xd8));
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
    split_bytes(sign_down(load_words(elements + 2 * i)),
                sign_down(load_words(elements + 2 * i + LANE)), planes[0] + i, planes[1] + i);
  }
}

INLINE void join_2(const codec_block *planes, uint8_t *elements) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    __m256i a, b;
    join_bytes(load_words(planes[0] + i), load_words(planes[1] + i), &a, &b);
    store_words(elements + 2 * i, sign_up(a));
    store_words(elements + 2 * i + LANE, sign_up(b));
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
    __m256i a = load_words(in), b = load_words(in + LANE), c = load_words(in + 2 * LANE),
            d = load_words(in + 3 * LANE);
    split_bytes(lower_halves(a, b), lower_halves(c, d), planes[0] + i, planes[1] + i);
    split_bytes(sign_down(upper_halves(a, b)), sign_down(upper_halves(c, d)), planes[2] + i,
                planes[3] + i);
  }
}

INLINE void join_halves(__m256i low, __m256i high, uint8_t *elements) {
  __m256i lower = _mm256_unpacklo_epi16(low, high), upper = _mm256_unpackhi_epi16(low, high);
  store_words(elements, _mm256_permute2x128_si256(lower, upper, 0x20));
  store_words(elements + LANE, _mm256_permute2x128_si256(lower, upper, 0x31));
}

INLINE void join_4(const codec_block *planes, uint8_t *elements) {
  for (unsigned i = 0; i < CODEC_BLOCK; i += LANE) {
    __m256i low[2], high[2];
    join_bytes(load_words(planes[0] + i), load_words(planes[1] + i), &low[0], &low[1]);
    join_bytes(load_words(planes[2] + i), load_words(planes[3] + i), &high[0], &high[1]);
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

#include "net_plugin/codec/form_bytes.h"

const struct codec_form codec_avx2 = { "avx2", is_usable, split, join, is_all, pack, unpack };

#endif
