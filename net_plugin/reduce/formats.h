/* SPDX-License-Identifier: Apache-2.0 */
/* formats: f32 to the small floating-point formats and back, by integer operations and exact sums.
 * After vector.h and u32_from_u16(), u16_from_u32(), u32_from_u8(), u8_from_u32(). Rounds to the
 * nearest, ties to even; needs the default floating-point environment. */
#ifndef NET_PLUGIN_REDUCE_FORMATS_H
#define NET_PLUGIN_REDUCE_FORMATS_H

#include "net_plugin/reduce/vector.h"

#define F32_MAGNITUDE 0x7fffffffu
#define F32_INFINITY 0x7f800000u
#define F32_QUIET 0x00400000u
/* Every NaN that is computed becomes this one, PTX's canonical NaN: which operand's bits survive
 * differs among processors. Cut to 16 or 8 bits it has the same form. */
#define F32_NAN 0x7fffffffu
#define F64_NAN UINT64_C(0x7fffffffffffffff)

/* A format of fewer bits, with denormals. */
struct format {
  int mantissa_bits, bias;
  uint32_t sign, nan;
  uint32_t infinity; /* and NaN above; E4M3 has no infinity, only one NaN */
  uint32_t top;      /* what is too large becomes this: infinity, or the largest number */
};
/* IEEE 754 binary16. NCCL makes 8 bits with CUDA's __nv_fp8_e4m3() and __nv_fp8_e5m2(), which
 * saturate. */
#define FORMAT_F16 ((struct format){ 10, 15, 0x8000, 0x7fff, 0x7c00, 0x7c00 })
#define FORMAT_E4M3 ((struct format){ 3, 7, 0x80, 0x7f, 0x7f, 0x7e })
#define FORMAT_E5M2 ((struct format){ 2, 15, 0x80, 0x7f, 0x7c, 0x7b })

INLINE u32v magnitude_of(f32v value) {
  return (u32v)value & F32_MAGNITUDE;
}

INLINE f32v one_nan(f32v value) {
  return (f32v)SELECT(u32v, value != value, (u32v){ 0 } + F32_NAN, (u32v)value);
}

INLINE f64v one_nan_f64(f64v value) {
  return (f64v)SELECT(u64v, value != value, (u64v){ 0 } + F64_NAN, (u64v)value);
}

/* A normal number's exponent is re-based, and half of what is cut off added, less one if it is
 * even. A denormal one is added to a power of two so large that the sum's last bit is the format's
 * smallest number: the addition rounds it. */
INLINE u32v small_from_f32(f32v value, struct format format) {
  u32v magnitude = magnitude_of(value);
  int cut = 23 - format.mantissa_bits;
  uint32_t smallest_normal = (uint32_t)(128 - format.bias) << 23;
  uint32_t rebase = ((uint32_t)(format.bias - 127) << 23) + (1u << (cut - 1)) - 1;
  uint32_t align = (uint32_t)(151 - format.bias - format.mantissa_bits) << 23;
  u32v normal = (magnitude + rebase + ((magnitude >> cut) & 1)) >> cut;
  u32v denormal = (u32v)((f32v)magnitude + (f32v)((u32v){ 0 } + align)) - align;
  u32v code = SELECT(u32v, (i32v)magnitude < (int32_t)smallest_normal, denormal, normal);
  code = SELECT(u32v, (i32v)code > (int32_t)format.top, (u32v){ 0 } + format.top, code);
  code = SELECT(u32v, value != value, (u32v){ 0 } + format.nan, code);
  u32v is_negative = (u32v)((i32v)value < 0) & (u32v)(value == value);
  return code | (is_negative & format.sign);
}

/* A denormal number gets an exponent and so an implicit one, which is subtracted again. */
INLINE f32v f32_from_small(u32v code, struct format format) {
  u32v small = code & (format.sign - 1);
  u32v shifted = small << (23 - format.mantissa_bits);
  uint32_t smallest_normal = (uint32_t)(128 - format.bias) << 23;
  u32v normal = shifted + ((uint32_t)(127 - format.bias) << 23);
  u32v denormal = (u32v)((f32v)(shifted + smallest_normal) - (f32v)((u32v){ 0 } + smallest_normal));
  u32v bits = SELECT(u32v, (i32v)small < (int32_t)(1u << format.mantissa_bits), denormal, normal);
  bits = SELECT(u32v, (i32v)small >= (int32_t)format.infinity, shifted | F32_INFINITY, bits);
  bits |= (u32v)((i32v)small > (int32_t)format.infinity) & F32_QUIET;
  u32v is_negative = (u32v)((code & format.sign) != 0);
  return (f32v)(bits | (is_negative & ~F32_MAGNITUDE));
}

INLINE u16h bf16_from_f32(f32v value) {
  u32v bits = (u32v)value;
  u32v code = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  code = SELECT(u32v, value != value, (u32v){ 0 } + (F32_NAN >> 16), code);
  return u16_from_u32(code);
}

INLINE f32v f32_from_bf16(u16h code) {
  return (f32v)(u32_from_u16(code) << 16);
}

INLINE u16h f16_from_f32_by_integers(f32v value) {
  return u16_from_u32(small_from_f32(value, FORMAT_F16));
}

INLINE f32v f32_from_f16_by_integers(u16h code) {
  return f32_from_small(u32_from_u16(code), FORMAT_F16);
}

INLINE f32v f32_from_f8(u8q code, struct format format) {
  return f32_from_small(u32_from_u8(code), format);
}

INLINE u8q f8_from_f32(f32v value, struct format format) {
  return u8_from_u32(small_from_f32(value, format));
}

#endif
