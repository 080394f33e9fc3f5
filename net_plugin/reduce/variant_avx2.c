/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 32 bytes; F16C for binary16. */
#if defined(__x86_64__)
#include <immintrin.h>

#define VARIANT reduce_avx2
#define VECTOR_BYTES 32
#define TARGET __attribute__((target("avx2,f16c")))

#include "net_plugin/reduce/vector.h"

INLINE u32v u32_from_u16(u16h narrow) {
  return (u32v)_mm256_cvtepu16_epi32((__m128i)narrow);
}

INLINE u16h u16_from_u32(u32v wide) {
  __m256i all = (__m256i)wide;
  return (u16h)_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

INLINE u32v u32_from_u8(u8q narrow) {
  return (u32v)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)narrow));
}

INLINE u8q u8_from_u32(u32v wide) {
  __m128i half = (__m128i)u16_from_u32(wide);
  return (u8q)_mm_cvtsi128_si64(_mm_packus_epi16(half, half));
}

#include "net_plugin/reduce/formats.h"

INLINE u16h f16_from_f32(f32v value) {
  return (u16h)_mm256_cvtps_ph((__m256)one_nan(value), _MM_FROUND_TO_NEAREST_INT);
}

INLINE f32v f32_from_f16(u16h code) {
  return (f32v)_mm256_cvtph_ps((__m128i)code);
}

#include "net_plugin/reduce/variant_body.h"
#endif
