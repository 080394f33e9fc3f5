/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 32 bytes; F16C for binary16. */
#if defined(__x86_64__)
#include <immintrin.h>

#define VARIANT reduce_avx2
#define VECTOR_BYTES 32
#define TARGET __attribute__((target("avx2,f16c")))

#include "net_plugin/reduce/formats.h"

INLINE u16h f16_from_f32(f32v value) {
  return (u16h)_mm256_cvtps_ph((__m256)one_nan(value), _MM_FROUND_TO_NEAREST_INT);
}

INLINE f32v f32_from_f16(u16h code) {
  return (f32v)_mm256_cvtph_ps((__m128i)code);
}

#include "net_plugin/reduce/variant_body.h"
#endif
