/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 16 bytes; conversions of binary16 by instructions that every AArch64 has. */
#if defined(__aarch64__)
#include <arm_neon.h>

#define VARIANT reduce_neon
#define VECTOR_BYTES 16
#define TARGET

#include "net_plugin/reduce/vector.h"

#define u32_from_u16 u32_from_u16_by_compiler
#define u16_from_u32 u16_from_u32_by_compiler
#define u32_from_u8 u32_from_u8_by_compiler
#define u8_from_u32 u8_from_u32_by_compiler

#include "net_plugin/reduce/formats.h"

INLINE u16h f16_from_f32(f32v value) {
  return (u16h)vcvt_f16_f32((float32x4_t)one_nan(value));
}

INLINE f32v f32_from_f16(u16h code) {
  return (f32v)vcvt_f32_f16((float16x4_t)code);
}

#include "net_plugin/reduce/variant_body.h"
#endif
