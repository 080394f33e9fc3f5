/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 64 bytes. AVX512_BF16 is of no use: its conversion takes denormals for zeros. */
#if defined(__x86_64__)
#include <immintrin.h>

#define VARIANT reduce_avx512
#define VECTOR_BYTES 64
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

#include "net_plugin/reduce/vector.h"

INLINE u32v u32_from_u16(u16h narrow) {
  return (u32v)_mm512_cvtepu16_epi32((__m256i)narrow);
}

INLINE u16h u16_from_u32(u32v wide) {
  return (u16h)_mm512_cvtepi32_epi16((__m512i)wide);
}

INLINE u32v u32_from_u8(u8q narrow) {
  return (u32v)_mm512_cvtepu8_epi32((__m128i)narrow);
}

INLINE u8q u8_from_u32(u32v wide) {
  return (u8q)_mm512_cvtepi32_epi8((__m512i)wide);
}

#include "net_plugin/reduce/formats.h"

/* Without optimization it is a macro of gcc's that converts -1. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
INLINE u16h f16_from_f32(f32v value) {
  return (u16h)_mm512_cvtps_ph((__m512)one_nan(value), _MM_FROUND_TO_NEAREST_INT);
}
#pragma GCC diagnostic pop

INLINE f32v f32_from_f16(u16h code) {
  return (f32v)_mm512_cvtph_ps((__m256i)code);
}

#include "net_plugin/reduce/variant_body.h"
#endif
