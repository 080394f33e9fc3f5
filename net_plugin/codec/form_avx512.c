/* SPDX-License-Identifier: Apache-2.0 */
/* The form for processors with AVX-512 that can compress bytes: Intel since Ice Lake, AMD since
 * Zen 4. A row of a block is a register. */
#include "net_plugin/codec/format.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Without optimization some functions are macros of gcc's that convert unsigned constants. */
#pragma GCC diagnostic ignored "-Wsign-conversion"

#define TARGET                                                                                     \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { ROWS = CODEC_BLOCK / CODEC_ROW };

static bool is_usable(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

INLINE __m512i load(const uint8_t *from) {
  return _mm512_loadu_si512(from);
}
/* Not as an operand of vpexpandb, which from memory is many times slower on AMD. */
INLINE __m512i load_now(const uint8_t *from) {
  __m512i value = load(from);
  __asm__("" : "+v"(value));
  return value;
}
INLINE void store(uint8_t *to, __m512i value) {
  _mm512_storeu_si512(to, value);
}
INLINE __m512i all(unsigned byte) {
  return _mm512_set1_epi8((char)byte);
}
INLINE unsigned bits_of(__mmask64 mask) {
  return (unsigned)_mm_popcnt_u64(mask);
}
/* 0, 1, 2, ... */
INLINE __m512i numbers(void) {
  return _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928,
                          0x2726252423222120, 0x1f1e1d1c1b1a1918, 0x1716151413121110,
                          0x0f0e0d0c0b0a0908, 0x0706050403020100);
}
/* Bits for `count` bytes, of which there are more, or none. */
INLINE __mmask64 first(unsigned count) {
  return count >= 64 ? ~(__mmask64)0 : _bzhi_u64(~UINT64_C(0), count);
}

/* ---- elements and planes ---- */

INLINE void split_2(const uint8_t *elements, codec_block *planes) {
  __m512i even = _mm512_add_epi8(numbers(), numbers()), odd = _mm512_or_si512(even, all(1));
  for (unsigned i = 0; i < CODEC_BLOCK; i += CODEC_ROW) {
    __m512i a = load(elements + 2 * i), b = load(elements + 2 * i + 64);
    a = _mm512_shldi_epi16(a, a, 1);
    b = _mm512_shldi_epi16(b, b, 1);
    store(planes[0] + i, _mm512_permutex2var_epi8(a, even, b));
    store(planes[1] + i, _mm512_permutex2var_epi8(a, odd, b));
  }
}

INLINE void join_2(const codec_block *planes, uint8_t *elements) {
  __m512i half = _mm512_srli_epi16(numbers(), 1); /* bytes of which every other one counts */
  half = _mm512_or_si512(_mm512_and_si512(half, all(0x1f)),
                         _mm512_slli_epi16(_mm512_and_si512(numbers(), all(1)), 6));
  for (unsigned i = 0; i < CODEC_BLOCK; i += CODEC_ROW) {
    __m512i low = load(planes[0] + i), high = load(planes[1] + i);
    __m512i a = _mm512_permutex2var_epi8(low, half, high);
    __m512i b = _mm512_permutex2var_epi8(low, _mm512_add_epi8(half, all(32)), high);
    store(elements + 2 * i, _mm512_shrdi_epi16(a, a, 1));
    store(elements + 2 * i + 64, _mm512_shrdi_epi16(b, b, 1));
  }
}

INLINE void split_4(const uint8_t *elements, codec_block *planes) {
  const __mmask32 upper = 0xaaaaaaaa;
  /* Byte 0 of 32 elements and then byte 1 of them. */
  __m512i low = _mm512_or_si512(_mm512_slli_epi16(_mm512_and_si512(numbers(), all(0x1f)), 2),
                                _mm512_srli_epi16(_mm512_and_si512(numbers(), all(0x20)), 5));
  __m512i high = _mm512_or_si512(low, all(2));
  for (unsigned i = 0; i < CODEC_BLOCK; i += CODEC_ROW) {
    __m512i in[4], bytes[2][2];
    for (unsigned k = 0; k < 4; k++) {
      in[k] = load(elements + 4 * i + 64 * k);
      in[k] = _mm512_mask_shldi_epi16(in[k], upper, in[k], in[k], 1);
    }
    for (unsigned k = 0; k < 2; k++) {
      bytes[0][k] = _mm512_permutex2var_epi8(in[2 * k], low, in[2 * k + 1]);
      bytes[1][k] = _mm512_permutex2var_epi8(in[2 * k], high, in[2 * k + 1]);
    }
    for (unsigned k = 0; k < 2; k++) {
      store(planes[2 * k] + i, _mm512_shuffle_i64x2(bytes[k][0], bytes[k][1], 0x44));
      store(planes[2 * k + 1] + i, _mm512_shuffle_i64x2(bytes[k][0], bytes[k][1], 0xee));
    }
  }
}

INLINE void join_4(const codec_block *planes, uint8_t *elements) {
  const __mmask32 upper = 0xaaaaaaaa;
  /* Byte k of an element is at 32 k and the element's number. */
  __m512i quarter = _mm512_srli_epi16(_mm512_and_si512(numbers(), all(0x3c)), 2);
  quarter = _mm512_or_si512(quarter, _mm512_slli_epi16(_mm512_and_si512(numbers(), all(3)), 5));
  __m512i next = _mm512_add_epi8(quarter, all(16));
  for (unsigned i = 0; i < CODEC_BLOCK; i += CODEC_ROW) {
    __m512i p[4], out[4];
    for (unsigned k = 0; k < 4; k++) {
      p[k] = load(planes[k] + i);
    }
    __m512i low = _mm512_shuffle_i64x2(p[0], p[1], 0x44),
            high = _mm512_shuffle_i64x2(p[2], p[3], 0x44);
    out[0] = _mm512_permutex2var_epi8(low, quarter, high);
    out[1] = _mm512_permutex2var_epi8(low, next, high);
    low = _mm512_shuffle_i64x2(p[0], p[1], 0xee);
    high = _mm512_shuffle_i64x2(p[2], p[3], 0xee);
    out[2] = _mm512_permutex2var_epi8(low, quarter, high);
    out[3] = _mm512_permutex2var_epi8(low, next, high);
    for (unsigned k = 0; k < 4; k++) {
      store(elements + 4 * i + 64 * k, _mm512_mask_shrdi_epi16(out[k], upper, out[k], out[k], 1));
    }
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
  __mmask64 other = 0;
  for (unsigned i = 0; i < CODEC_BLOCK; i += CODEC_ROW) {
    other |= _mm512_cmpneq_epu8_mask(load(values + i), all(value));
  }
  return other == 0;
}

/* ---- codes ---- */

INLINE uint8_t *pack_field(unsigned field, unsigned shift, const __m512i *codes, uint8_t *coded) {
  __m512i mask = all((1u << field) - 1);
#pragma GCC unroll 8
  for (unsigned i = 0; i < field; i++, coded += CODEC_ROW) {
    __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (unsigned at = 0; at < 8; at += field, codes++) {
      __m512i part = _mm512_and_si512(_mm512_srli_epi16(*codes, (int)shift), mask);
      sum = _mm512_or_si512(sum, _mm512_slli_epi16(part, (int)at));
    }
    store(coded, sum);
  }
  return coded;
}

INLINE const uint8_t *unpack_field(unsigned field, unsigned shift, const uint8_t *coded,
                                   __m512i *codes) {
  __m512i mask = all((1u << field) - 1);
#pragma GCC unroll 8
  for (unsigned i = 0; i < field; i++, coded += CODEC_ROW) {
    __m512i sum = load(coded);
#pragma GCC unroll 8
    for (unsigned at = 0; at < 8; at += field, codes++) {
      __m512i part = _mm512_and_si512(_mm512_srli_epi16(sum, (int)at), mask);
      *codes = shift == 0 ? part : _mm512_or_si512(*codes, _mm512_slli_epi16(part, (int)shift));
    }
  }
  return coded;
}

/* ---- escapes ----
 *
 * Fewer than 128 of a block, which is nearly always all of them, stay in two registers: a load that
 * spans several stores before it would wait for all of them. */

struct some {
  __m512i low, high;
};

/* The half bytes of up to 64 escapes, and those of them that are far. */
INLINE __m256i halves(const struct codec_plane *plane, __m512i escape, unsigned count,
                      __mmask64 *is_far) {
  __mmask64 valid = first(count);
  __m512i near = _mm512_sub_epi8(escape, all((unsigned)(plane->base - plane->below)));
  near = _mm512_mask_sub_epi8(near, _mm512_cmpge_epu8_mask(near, all(plane->below)), near,
                              all(codec_window(plane->bits)));
  *is_far = _mm512_mask_cmpge_epu8_mask(valid, near, all(CODEC_FAR));
  __m512i half = _mm512_maskz_min_epu8(valid, near, all(CODEC_FAR));
  half = _mm512_maddubs_epi16(half, _mm512_set1_epi16(0x1001));
  return _mm512_cvtepi16_epi8(half);
}

INLINE uint8_t *pack_some(const struct codec_plane *plane, struct some some, unsigned count,
                          uint8_t *coded) {
  __mmask64 is_far[2];
  __m256i low = halves(plane, some.low, count, &is_far[0]);
  __m256i high = halves(plane, some.high, count > 64 ? count - 64 : 0, &is_far[1]);
  _mm256_storeu_si256((__m256i_u *)coded, low);
  _mm256_storeu_si256((__m256i_u *)(coded + 32), high);
  coded += (count + 1) / 2;
  store(coded, _mm512_maskz_compress_epi8(is_far[0], some.low));
  coded += bits_of(is_far[0]);
  store(coded, _mm512_maskz_compress_epi8(is_far[1], some.high));
  return coded + bits_of(is_far[1]);
}

TARGET static uint8_t *pack_many(const struct codec_plane *plane, const uint8_t *escapes,
                                 unsigned count, uint8_t *coded) {
  uint8_t far[CODEC_BLOCK + CODEC_ROW], *end = far;
  for (unsigned i = 0; i < count; i += CODEC_ROW) {
    __mmask64 is_far;
    __m512i escape = load(escapes + i);
    __m256i half = halves(plane, escape, count - i, &is_far);
    _mm256_storeu_si256((__m256i_u *)(coded + i / 2), half);
    store(end, _mm512_maskz_compress_epi8(is_far, escape));
    end += bits_of(is_far);
  }
  coded += (count + 1) / 2;
  for (const uint8_t *at = far; at < end; at += CODEC_ROW) {
    store(coded + (at - far), load(at));
  }
  return coded + (end - far);
}

/* What the 16 half bytes stand for, in each lane of 16 bytes. */
INLINE __m512i near_escapes(const struct codec_plane *plane) {
  __m512i lane = _mm512_and_si512(numbers(), all(15));
  __m512i near = _mm512_add_epi8(lane, all((unsigned)(plane->base - plane->below)));
  return _mm512_mask_add_epi8(near, _mm512_cmpge_epu8_mask(lane, all(plane->below)), near,
                              all(codec_window(plane->bits)));
}

/* Up to 64 escapes; *far goes on. */
INLINE __m512i unpack_64(__m512i near, const uint8_t *coded, unsigned count, const uint8_t **far) {
  __m512i half = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i_u *)coded));
  half = _mm512_and_si512(_mm512_or_si512(half, _mm512_slli_epi16(half, 4)), all(15));
  __mmask64 is_far = _mm512_mask_cmpeq_epu8_mask(first(count), half, all(CODEC_FAR));
  __m512i escape = _mm512_shuffle_epi8(near, half);
  escape = _mm512_mask_expand_epi8(escape, is_far, load_now(*far));
  *far += bits_of(is_far);
  return escape;
}

/* ---- planes ---- */

/* Puts the first bytes of `next` behind the `count` that are there, fewer than 128. */
INLINE void append(struct some *some, unsigned count, __m512i next) {
  __m512i turned = _mm512_permutexvar_epi8(_mm512_sub_epi8(numbers(), all(count)), next);
  __mmask64 from = _cvtu64_mask64(~UINT64_C(0) << count % 64);
  some->low = _mm512_mask_mov_epi8(some->low, count < 64 ? from : 0, turned);
  some->high = _mm512_mask_mov_epi8(some->high, count < 64 ? ~(__mmask64)0 : from, turned);
}

INLINE uint8_t *pack_bits(unsigned bits, const struct codec_plane *plane, const uint8_t *values,
                          uint8_t *coded) {
  _Alignas(64) uint8_t escapes[CODEC_BLOCK + CODEC_ROW];
  struct some some = { _mm512_setzero_si512(), _mm512_setzero_si512() };
  unsigned count = 0, window = codec_window(bits);
  __m512i codes[ROWS];
#pragma GCC unroll 8
  for (unsigned i = 0; i < ROWS; i++) {
    __m512i value = load(values + i * CODEC_ROW);
    __m512i offset = _mm512_sub_epi8(value, all(plane->base));
    __mmask64 is_outside = _mm512_cmpge_epu8_mask(offset, all(window));
    __mmask64 is_special = _mm512_cmpeq_epu8_mask(value, all(plane->special));
    __mmask64 is_escape = is_outside & ~is_special;
    codes[i] = _mm512_mask_mov_epi8(offset, is_escape, all(window + 1));
    codes[i] = _mm512_mask_mov_epi8(codes[i], is_special, all(window));
    __m512i gathered = _mm512_maskz_compress_epi8(is_escape, value);
    store(escapes + count, gathered);
    append(&some, count, gathered);
    count += bits_of(is_escape);
  }
  if (bits == 3) {
    coded = pack_field(2, 0, codes, coded);
    coded = pack_field(1, 2, codes, coded);
  } else {
    coded = pack_field(bits, 0, codes, coded);
  }
  return count < 128 ? pack_some(plane, some, count, coded)
                     : pack_many(plane, escapes, count, coded);
}

/* The bytes that the codes stand for, in each lane of 16 bytes. */
INLINE __m512i bytes_of_codes(const struct codec_plane *plane) {
  __m512i lane = _mm512_and_si512(numbers(), all(15));
  return _mm512_mask_mov_epi8(_mm512_add_epi8(lane, all(plane->base)),
                              _mm512_cmpeq_epu8_mask(lane, all(codec_window(plane->bits))),
                              all(plane->special));
}

INLINE const uint8_t *unpack_some(const struct codec_plane *plane, const __m512i *codes,
                                  const __mmask64 *is_escape, unsigned count, const uint8_t *coded,
                                  uint8_t *values) {
  const uint8_t *far = coded + (count + 1) / 2;
  __m512i near = near_escapes(plane), bytes = bytes_of_codes(plane), next = numbers();
  __m512i low = unpack_64(near, coded, count, &far);
  __m512i high = unpack_64(near, coded + 32, count > 64 ? count - 64 : 0, &far);
#pragma GCC unroll 8
  for (unsigned i = 0; i < ROWS; i++) {
    __m512i escape = _mm512_permutex2var_epi8(low, next, high);
    __m512i value = _mm512_shuffle_epi8(bytes, codes[i]);
    store(values + i * CODEC_ROW, _mm512_mask_expand_epi8(value, is_escape[i], escape));
    next = _mm512_add_epi8(next, all(bits_of(is_escape[i])));
  }
  return far;
}

INLINE const uint8_t *unpack_many(const struct codec_plane *plane, const __m512i *codes,
                                  const __mmask64 *is_escape, unsigned count, const uint8_t *coded,
                                  uint8_t *values) {
  _Alignas(64) uint8_t escapes[CODEC_BLOCK + CODEC_ROW];
  const uint8_t *far = coded + (count + 1) / 2, *escape = escapes;
  __m512i near = near_escapes(plane), bytes = bytes_of_codes(plane);
  for (unsigned i = 0; i < count; i += CODEC_ROW) {
    store(escapes + i, unpack_64(near, coded + i / 2, count - i, &far));
  }
  for (unsigned i = 0; i < ROWS; i++) {
    __m512i value = _mm512_shuffle_epi8(bytes, codes[i]);
    value = _mm512_mask_expand_epi8(value, is_escape[i], load_now(escape));
    store(values + i * CODEC_ROW, value);
    escape += bits_of(is_escape[i]);
  }
  return far;
}

INLINE const uint8_t *unpack_bits(unsigned bits, const struct codec_plane *plane,
                                  const uint8_t *coded, uint8_t *values) {
  unsigned count = 0;
  __m512i codes[ROWS];
  if (bits == 3) {
    coded = unpack_field(2, 0, coded, codes);
    coded = unpack_field(1, 2, coded, codes);
  } else {
    coded = unpack_field(bits, 0, coded, codes);
  }
  __mmask64 is_escape[ROWS];
#pragma GCC unroll 8
  for (unsigned i = 0; i < ROWS; i++) {
    is_escape[i] = _mm512_cmpeq_epu8_mask(codes[i], all(codec_window(bits) + 1u));
    count += bits_of(is_escape[i]);
  }
  return count < 128 ? unpack_some(plane, codes, is_escape, count, coded, values)
                     : unpack_many(plane, codes, is_escape, count, coded, values);
}

#include "net_plugin/codec/form_bits.h"

const struct codec_form codec_avx512 = { "avx512", is_usable, split, join, is_all, pack, unpack };

#endif
